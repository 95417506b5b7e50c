"""Waiting for something that only looking can tell.

Rules:
* A look every 50 ms, up to a limit; the last look decides.

Source: servers.md §2.3.
"""

import asyncio
from collections.abc import Callable
from typing import Final

_LOOK_SECONDS: Final = 0.05


async def until(true: Callable[[], bool], seconds: float) -> bool:
    """Return whether `true()` became so within `seconds`."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not true():
        if asyncio.get_running_loop().time() >= deadline:
            return False
        await asyncio.sleep(_LOOK_SECONDS)
    return True

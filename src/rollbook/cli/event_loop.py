"""The one event loop of a command.

Rules:
* uvloop where it exists, asyncio's own elsewhere; an interrupt cancels the command's task and is raised once it ended.
* Connections that the command opened are closed before the loop is.
"""

import asyncio
import sys
from collections.abc import Coroutine
from typing import Any, TypeVar

from rollbook.servers.http.client_pool import global_aiohttp_client_exit

_T = TypeVar("_T")


def in_event_loop(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run `coroutine` to its end on the fastest event loop that is installed."""
    if sys.platform == "win32":
        return asyncio.run(_to_its_end(coroutine))
    import uvloop  # noqa: PLC0415  it does not exist on every platform

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_to_its_end(coroutine))


async def _to_its_end(coroutine: Coroutine[Any, Any, _T]) -> _T:
    try:
        return await coroutine
    finally:
        await global_aiohttp_client_exit()

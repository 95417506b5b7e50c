"""The one event loop of a command.

Rules:
* uvloop where it exists, asyncio's own elsewhere; an interrupt cancels the command's task and is raised once it ended.
* Connections that the command opened are closed before the loop is; what was never loaded opened none.
* An interrupt that comes while the loop closes comes too late: the work is done, and what it came to is told.
"""

import asyncio
import signal
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

_T = TypeVar("_T")
_POOL: Final = "rollbook.servers.http.client_pool"


def in_event_loop(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run `coroutine` to its end on the fastest event loop that is installed."""
    if sys.platform == "win32":
        return asyncio.run(_to_its_end(coroutine))
    import uvloop  # noqa: PLC0415  it does not exist on every platform

    runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
    try:
        return runner.run(_to_its_end(coroutine))
    finally:
        with _uninterrupted():
            runner.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ignore interrupts while the block runs; only a main thread hears them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)


async def _to_its_end(coroutine: Coroutine[Any, Any, _T]) -> _T:
    try:
        return await coroutine
    finally:
        await _close_connections()


async def _close_connections() -> None:
    """Close the sessions of aiohttp, if anything may have opened one."""
    if _POOL in sys.modules:
        from rollbook.servers.http.client_pool import global_aiohttp_client_exit  # noqa: PLC0415  see the rules

        await global_aiohttp_client_exit()

"""Signals → the wish to stop a run, or to end other work: the one place that hears them.

Rules:
* The first signal ends admission and is answered in a line; the second ends at once what is in flight; the third ends
  the command.
* A signal that this process was told to ignore (`nohup`, a shell's background job) stays ignored.
* Work of another kind is cancelled by the first, and has taken away what it began when the command ends.
* What a signal ended exits with 128 and the signal's number.

Source: collection.md §5.6; case RC-50.
"""

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

import click

from rollbook.cli.event_loop import in_event_loop
from rollbook.cli.terminal import note
from rollbook.dispatch.stop import Stop

_T = TypeVar("_T")
_ENDING: Final = ("SIGTERM", "SIGHUP")
_HEARD: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2")
EXIT_BASE: Final = 128


@contextmanager
def heard(stop: Stop, grace: float) -> Iterator[None]:
    """Turn the signals that come while the block runs into requests to `stop`; work in flight has `grace` seconds."""
    task = asyncio.current_task()

    def hear(number: signal.Signals) -> None:
        if stop.at_once.is_set() and task is not None:
            task.cancel()
        answer = _answer(stop, number, grace)
        stop.request(number.name, EXIT_BASE + number)
        note(answer)

    with _told(_HEARD, hear):
        yield


def unless_signalled(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run `coroutine` to its end in the event loop; SIGTERM and SIGHUP cancel it, as an interrupt does.

    Raises:
        click.exceptions.Exit: one of them came; its code is 128 and the signal's number.

    """
    came: list[signal.Signals] = []
    try:
        return in_event_loop(_cancelled_by_signals(coroutine, came))
    except asyncio.CancelledError:
        if not came:
            raise
        raise click.exceptions.Exit(EXIT_BASE + came[0]) from None


async def _cancelled_by_signals(coroutine: Coroutine[Any, Any, _T], came: list[signal.Signals]) -> _T:
    working = asyncio.ensure_future(coroutine)

    def hear(number: signal.Signals) -> None:
        came.append(number)
        working.cancel()
        note(f"{number.name}: what is under way is ended.")

    with _told(_ENDING, hear):
        return await working


@contextmanager
def _told(names: tuple[str, ...], hear: Callable[[signal.Signals], None]) -> Iterator[None]:
    """Call `hear` of the signals that come while the block runs, but of none that is ignored."""
    loop = asyncio.get_running_loop()
    known = [number for name in names if (number := getattr(signal, name, None)) is not None]
    numbers = [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, hear, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _answer(stop: Stop, number: signal.Signals, grace: float) -> str:
    if stop.asked.is_set():
        return f"{number.name}: what is in flight is ended now."
    return (
        f"{number.name}: nothing further is sent; what is in flight has {grace:g} s to end (--grace). "
        "A second signal ends it at once."
    )

"""Signals → the wish to stop a run: the one place that hears them.

Rules:
* The first signal ends admission and is answered in a line; the second ends at once what is in flight; the third ends
  the command.
* A signal that this process was told to ignore (`nohup`, a shell's background job) stays ignored.
* A run that a signal ended exits with 128 and the signal's number.

Source: collection.md §5.6; case RC-50.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from rollbook.cli.terminal import note
from rollbook.dispatch.stop import Stop

_HEARD: Final = ("SIGTERM", "SIGINT", "SIGHUP", "SIGUSR1", "SIGUSR2")
EXIT_BASE: Final = 128


@contextmanager
def heard(stop: Stop, grace: float) -> Iterator[None]:
    """Turn the signals that come while the block runs into requests to `stop`; work in flight has `grace` seconds."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    known = [number for name in _HEARD if (number := getattr(signal, name, None)) is not None]
    numbers = [number for number in known if signal.getsignal(number) is not signal.SIG_IGN]

    def hear(number: signal.Signals) -> None:
        if stop.at_once.is_set() and task is not None:
            task.cancel()
        _answer(stop, number, grace)
        stop.request(number.name, EXIT_BASE + number)

    for number in numbers:
        loop.add_signal_handler(number, hear, number)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _answer(stop: Stop, number: signal.Signals, grace: float) -> None:
    if stop.asked.is_set():
        note(f"{number.name}: what is in flight is ended now.")
    else:
        note(
            f"{number.name}: nothing further is sent; what is in flight has {grace:g} s to end (--grace). "
            "A second signal ends it at once."
        )

"""Work that a second process does meanwhile: forked, so that it has at hand whatever this one has read.

Rules:
* It answers in files that were opened before, and ends; nothing that this process opened is closed or flushed by it.
* It does not outlive this one for longer than a step of its work, and ends at once on the signals that end a command.
* Whatever happens to it, the caller can still do the work itself: all that is known of its end is whether it did it.
"""

import os
import signal
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from select import select
from typing import Final

_ENDING: Final = (signal.SIGINT, signal.SIGTERM)
_LOOKED_EVERY_S: Final = 0.1


class ParentGoneError(Exception):
    """Nobody waits for the work any more."""


def has_another_processor() -> bool:
    """Whether a second process would have a processor of its own, and can be forked safely."""
    return sys.platform == "linux" and len(os.sched_getaffinity(0)) > 1


class SecondProcess:
    """A process that does `work`, which calls what it is given at each of its steps.

    Raises:
        OSError: no process can be started.

    """

    def __init__(self, work: Callable[[Callable[[], None]], None]) -> None:
        parent, self._has_ended = os.getpid(), False
        self._alive, held = os.pipe()
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # threads that wait hold nothing that is used here
                self._pid = os.fork()
            if not self._pid:
                _do(work, parent)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        os.close(held)

    def has_done_it(self, is_over: Callable[[], bool]) -> bool:
        """Wait for its end unless it `is_over`, and return whether the work is done."""
        while not select([self._alive], [], [], _LOOKED_EVERY_S)[0]:
            if is_over():
                return False
        return self._waited() == 0

    def end(self) -> None:
        """End it, unless it has ended."""
        if not self._has_ended:
            with suppress(ProcessLookupError):
                os.kill(self._pid, signal.SIGKILL)
            self._waited()
        os.close(self._alive)

    def _waited(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        self._has_ended = True
        return os.waitstatus_to_exitcode(status)


def _do(work: Callable[[Callable[[], None]], None], parent: int) -> None:
    """Do the work in the new process, and end it without anything that this one's end would bring about."""
    code = 1

    def step() -> None:
        if os.getppid() != parent:
            raise ParentGoneError

    try:
        signal.set_wakeup_fd(-1)
        for number in _ENDING:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
        work(step)
        code = 0
    finally:
        os._exit(code)

"""The lock of a run: one writer at a time across processes and hosts, fenced by a token.

Rules:
* Where `flock` works it decides who writes; what the file says names the holder, and is out of date once the lock is
  free. Only a living holder in the file of this very host shows that the lock keeps nobody out, and is left alone.
* Where `flock` does not work, the token in the file decides. A holder that may be alive is never pushed aside unasked.
* Whoever lost the file (taken over, replaced, deleted) learns it from `check` before the next commit.
* The file is one JSON line and stays; an empty or unreadable file is held by nobody.
* A pid means something on its own host, in its own boot and pid namespace, together with its start time.

Source: collection.md §1.2, §5.5.
"""

import fcntl
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from rollbook.errors import LedgerError
from rollbook.ledger.lock_file import (
    BUSY,
    GRANTED,
    NOBODY,
    UNNAMED,
    UNSUPPORTED,
    Holder,
    activity_and_start,
    again_if_stale,
    ask_flock,
    boot_name,
    holder_at,
    holder_in,
    line_of,
    ourselves,
    refuse_stale,
    write_line,
)

_ASK_AGAIN_S: Final = 0.05  # a probe holds the lock for microseconds
_ASK_TIMES: Final = 20
_SETTLE_S: Final = 0.2  # two that wrote their tokens at once both read the later one after this

_ENDED: Final = frozenset({"Z", "X", "x"})  # not reaped yet, and yet no longer running
_WAIT: Final = "wait for it, or give another --output"
_CLOSE_IT: Final = (
    "it is this process: close the call that records it with aclose(), or end its run, before another one"
)


class _Fate(StrEnum):
    LIVING = "living"
    GONE = "gone"
    UNKNOWN = "unknown"


class RunLock:
    """The right to write one run, from `acquire` to `release`."""

    def __init__(
        self,
        path: Path,
        *,
        now: Callable[[], float],
        take_over: bool = False,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.token = ""
        self.warning: str | None = None
        self._path = path
        self._now = now
        self._take_over = take_over
        self._sleep = sleep or threading.Event().wait
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock, or say who has it. Waits for a second at most.

        Raises:
            LedgerError: somebody holds the run, may hold it, or the lock file cannot be used.

        """
        try:
            self._descriptor, self.token, unsupported = again_if_stale(self._take)
        except OSError as error:
            raise LedgerError(
                f"{self._path}: the lock of this run cannot be taken: {error.strerror}; see that its folder is "
                "there and can be written, or give another --output"
            ) from error
        if unsupported:
            self.warning = (
                f"{self._path}: file locks do not work on this file system ({os.strerror(unsupported)}), so the run is "
                "held by a token in that file, which is read again before every write"
            )
            self._sleep(_SETTLE_S)
            self._check_or_let_go()

    def release(self) -> None:
        """Write that nobody holds the run, and let go. Releasing twice, or what was taken over, changes nothing."""
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        token, self.token = self.token, ""
        with suppress(OSError):
            if (holder_in(descriptor) or UNNAMED).token == token:
                write_line(descriptor, NOBODY)
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)

    def check(self) -> None:
        """Make sure that the run is still ours; one small read.

        Raises:
            LedgerError: it is not, or that cannot be known.

        """
        if not self.token:
            raise LedgerError(f"{self._path}: this process does not hold the run; nothing is written")
        try:
            holder = again_if_stale(lambda: holder_at(self._path))
        except OSError as error:
            raise LedgerError(
                f"{self._path}: the lock of this run can no longer be read: {error.strerror}; nothing more is written. "
                "Put its folder back if it was moved or removed, and go on with --resume"
            ) from error
        if holder is None or holder.token != self.token:
            raise LedgerError(
                f"{self._path}: {holder or 'another process'} took over this run; nothing more is written. "
                "Wait for it, or give another --output"
            )

    def _take(self) -> tuple[int, str, int]:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            answer = self._ask(descriptor)
            self._refuse(answer, descriptor)
            refuse_stale(descriptor, self._path)
            holder = ourselves(self._now(), os.fstat(descriptor).st_ino)
            write_line(descriptor, line_of(holder))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, holder.token, answer

    def _ask(self, descriptor: int) -> int:
        for _ in range(_ASK_TIMES):
            answer = ask_flock(descriptor, fcntl.LOCK_EX)
            if answer not in BUSY:
                return answer
            self._sleep(_ASK_AGAIN_S)
        return ask_flock(descriptor, fcntl.LOCK_EX)

    def _refuse(self, answer: int, descriptor: int) -> None:
        holder = holder_in(descriptor)
        objection = _objection(answer, holder, _fate(holder, descriptor), take_over=self._take_over)
        if objection is not None:
            raise LedgerError(f"{self._path}: {objection}")

    def _check_or_let_go(self) -> None:
        try:
            self.check()
        except LedgerError:
            self.release()
            raise


def holder_of(path: Path) -> Holder | None:
    """Return who holds the run at this moment, without disturbing them; None when nobody does.

    Where locks do not work, a holder on another host is returned as it is written.

    Raises:
        LedgerError: the lock file cannot be read.

    """
    try:
        return again_if_stale(lambda: _probe(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LedgerError(f"{path}: the lock of this run cannot be read: {error.strerror}") from error


def last_holder_of(path: Path) -> Holder | None:
    """Return who the lock file names, whether it still holds the run or died with it; None after an orderly end."""
    try:
        return again_if_stale(lambda: holder_at(path))
    except OSError:
        return None


def _probe(path: Path) -> Holder | None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        answer = ask_flock(descriptor, fcntl.LOCK_SH)
        if answer == GRANTED:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        holder = holder_in(descriptor)
        return _holding(answer, holder, _fate(holder, descriptor))
    finally:
        os.close(descriptor)


def _holding(answer: int, holder: Holder | None, fate: _Fate) -> Holder | None:
    if answer in BUSY:
        return UNNAMED if holder is None or fate is _Fate.GONE else holder
    if answer == GRANTED:
        return holder if fate is _Fate.LIVING else None
    return None if fate is _Fate.GONE else holder


def _objection(answer: int, holder: Holder | None, fate: _Fate, *, take_over: bool) -> str | None:
    """Say why the run may not be taken: what `flock` answered, and what became of whom the file names."""
    if answer in BUSY and holder is not None and fate is _Fate.GONE:
        return (
            f"{holder} has ended, but the lock of this run is held: by a process that it started, or by one that just "
            "began; wait for it, or give another --output"
        )
    if answer in BUSY or fate is _Fate.LIVING:
        is_own = holder is not None and holder.pid == os.getpid() and fate is _Fate.LIVING
        return f"{holder or UNNAMED} is writing this run; {_CLOSE_IT if is_own else _WAIT}"
    if answer in UNSUPPORTED and fate is _Fate.UNKNOWN and not take_over:
        return (
            f"{holder} holds this run, and whether it still runs cannot be known from here, because file locks do not "
            f"work on this file system ({os.strerror(answer)}); wait for it, give another --output, or, when you know "
            "that it has ended, go on with --take-over"
        )
    return None


def _fate(holder: Holder | None, descriptor: int) -> _Fate:
    """Say what became of a holder. A copied lock file, with another inode, says nothing about the copy."""
    if holder is None:
        return _Fate.GONE
    if (holder.host, holder.boot) != (os.uname().nodename, boot_name()):
        return _Fate.UNKNOWN
    fate = _fate_of_process(holder.pid, holder.started)
    if fate is _Fate.LIVING and holder.inode not in {0, os.fstat(descriptor).st_ino}:
        return _Fate.UNKNOWN
    return fate


def _fate_of_process(pid: int, started: str) -> _Fate:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return _Fate.GONE
    except PermissionError:
        pass
    letter, start = activity_and_start(pid)
    if letter in _ENDED:
        return _Fate.GONE
    if not started or not start:
        return _Fate.UNKNOWN
    return _Fate.LIVING if start == started else _Fate.GONE

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

import errno
import fcntl
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

import msgspec

from rollbook.errors import LedgerError

_T = TypeVar("_T")

_BUSY: Final = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})
_UNSUPPORTED: Final = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
_GRANTED: Final = 0

_ASK_AGAIN_S: Final = 0.05  # a probe holds the lock for microseconds
_ASK_TIMES: Final = 20
_SETTLE_S: Final = 0.2  # two that wrote their tokens at once both read the later one after this

_MOST_BYTES: Final = 4096
_NOBODY: Final = b'{"token":""}\n'
_ENDED: Final = frozenset({"Z", "X", "x"})  # not reaped yet, and yet no longer running
_LARGEST_PID: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Holder:
    """What the lock file says about who holds the run. A holder without a name has pid 0."""

    token: str
    pid: int
    host: str
    boot: str
    started: str
    since: str
    inode: int = 0

    def __str__(self) -> str:
        """Name the process, as a message does."""
        return f"pid {self.pid} on {self.host} (since {self.since})" if self.pid else "another process"


class _Fate(StrEnum):
    LIVING = "living"
    GONE = "gone"
    UNKNOWN = "unknown"


_UNNAMED: Final = Holder(token="", pid=0, host="", boot="", started="", since="")


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
            self._descriptor, self.token, unsupported = _again_if_stale(self._take)
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
            if (_read(descriptor) or _UNNAMED).token == token:
                _write(descriptor, _NOBODY)
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
            holder = _again_if_stale(lambda: _read_at(self._path))
        except OSError as error:
            raise LedgerError(
                f"{self._path}: the lock of this run can no longer be read: {error.strerror}; nothing more is written. "
                "Go on with --resume"
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
            _refuse_stale(descriptor, self._path)
            holder = _ourselves(self._now(), os.fstat(descriptor).st_ino)
            _write(descriptor, msgspec.json.encode(asdict(holder)) + b"\n")
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor, holder.token, answer

    def _ask(self, descriptor: int) -> int:
        for _ in range(_ASK_TIMES):
            answer = _flock(descriptor, fcntl.LOCK_EX)
            if answer not in _BUSY:
                return answer
            self._sleep(_ASK_AGAIN_S)
        return _flock(descriptor, fcntl.LOCK_EX)

    def _refuse(self, answer: int, descriptor: int) -> None:
        holder = _read(descriptor)
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
        return _again_if_stale(lambda: _probe(path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise LedgerError(f"{path}: the lock of this run cannot be read: {error.strerror}") from error


def last_holder_of(path: Path) -> Holder | None:
    """Return who the lock file names, whether it still holds the run or died with it; None after an orderly end."""
    try:
        return _again_if_stale(lambda: _read_at(path))
    except OSError:
        return None


def _probe(path: Path) -> Holder | None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        answer = _flock(descriptor, fcntl.LOCK_SH)
        if answer == _GRANTED:
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        holder = _read(descriptor)
        return _holding(answer, holder, _fate(holder, descriptor))
    finally:
        os.close(descriptor)


def _holding(answer: int, holder: Holder | None, fate: _Fate) -> Holder | None:
    if answer in _BUSY:
        return _UNNAMED if holder is None or fate is _Fate.GONE else holder
    if answer == _GRANTED:
        return holder if fate is _Fate.LIVING else None
    return None if fate is _Fate.GONE else holder


def _objection(answer: int, holder: Holder | None, fate: _Fate, *, take_over: bool) -> str | None:
    """Say why the run may not be taken: what `flock` answered, and what became of whom the file names."""
    if answer in _BUSY and holder is not None and fate is _Fate.GONE:
        return (
            f"{holder} has ended, but the lock of this run is held: by a process that it started, or by one that just "
            "began; wait for it, or give another --output"
        )
    if answer in _BUSY or fate is _Fate.LIVING:
        return f"{holder or _UNNAMED} is writing this run; wait for it, or give another --output"
    if answer in _UNSUPPORTED and fate is _Fate.UNKNOWN and not take_over:
        return (
            f"{holder} holds this run, and whether it still runs cannot be known from here, because file locks do not "
            f"work on this file system ({os.strerror(answer)}); wait for it, give another --output, or, when you know "
            "that it has ended, go on with --take-over"
        )
    return None


def _flock(descriptor: int, mode: int) -> int:
    """Ask for the lock without waiting, and return 0, or the error number that says held or unsupported."""
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno is None or error.errno not in _BUSY | _UNSUPPORTED:
            raise
        return error.errno
    return _GRANTED


def _again_if_stale(read: Callable[[], _T]) -> _T:
    try:
        return read()
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
    return read()


def _refuse_stale(descriptor: int, path: Path) -> None:
    """Raise `ESTALE` when `path` is another file by now: a lock on a deleted file keeps nobody out."""
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def _write(descriptor: int, line: bytes) -> None:
    """Replace the line. It is never empty in between: readers take the first line, whatever follows it."""
    if os.pwrite(descriptor, line, 0) != len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.ftruncate(descriptor, len(line))
    os.fsync(descriptor)


def _read_at(path: Path) -> Holder | None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _read(descriptor)
    finally:
        os.close(descriptor)


def _read(descriptor: int) -> Holder | None:
    line = os.pread(descriptor, _MOST_BYTES, 0).split(b"\n", 1)[0]
    try:
        holder = msgspec.json.decode(line, type=Holder)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return holder if holder.token and 0 < holder.pid < _LARGEST_PID else None


def _ourselves(now: float, inode: int) -> Holder:
    return Holder(
        token=uuid4().hex,
        pid=os.getpid(),
        host=os.uname().nodename,
        boot=_boot(),
        started=_activity_and_start(os.getpid())[1],
        since=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        inode=inode,
    )


def _fate(holder: Holder | None, descriptor: int) -> _Fate:
    """Say what became of a holder. A copied lock file, with another inode, says nothing about the copy."""
    if holder is None:
        return _Fate.GONE
    if (holder.host, holder.boot) != (os.uname().nodename, _boot()):
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
    letter, start = _activity_and_start(pid)
    if letter in _ENDED:
        return _Fate.GONE
    if not started or not start:
        return _Fate.UNKNOWN
    return _Fate.LIVING if start == started else _Fate.GONE


def _activity_and_start(pid: int) -> tuple[str, str]:
    """Return the letter of what a process does and its start in ticks since boot; both empty without `/proc`."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode("ascii", "replace")
    except OSError:
        return "", ""
    fields = text.rpartition(")")[2].split()
    return fields[0], fields[19]


def _boot() -> str:
    """Name this boot and pid namespace: within both, a pid and its start time name one process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""

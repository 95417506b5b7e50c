"""The file behind a lock: one JSON line that names a holder, and the `flock` that is held on it.

Rules:
* The file is never empty in between: readers take the first line, whatever follows it.
* A lock on a file that is another one by now keeps nobody out, and counts for nothing.
* A pid means something on its own host, in its own boot and pid namespace, together with its start time.

Source: collection.md §1.2, §5.5.
"""

import errno
import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

import msgspec

_T = TypeVar("_T")

BUSY: Final = frozenset({errno.EWOULDBLOCK, errno.EAGAIN, errno.EACCES})
UNSUPPORTED: Final = frozenset({errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL})
GRANTED: Final = 0

_MOST_BYTES: Final = 4096
NOBODY: Final = b'{"token":""}\n'
_LARGEST_PID: Final = 1 << 30


class Holder(msgspec.Struct, frozen=True):
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


UNNAMED: Final = Holder(token="", pid=0, host="", boot="", started="", since="")


def ask_flock(descriptor: int, mode: int) -> int:
    """Ask for the lock without waiting, and return 0, or the error number that says held or unsupported."""
    try:
        fcntl.flock(descriptor, mode | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno is None or error.errno not in BUSY | UNSUPPORTED:
            raise
        return error.errno
    return GRANTED


def again_if_stale(read: Callable[[], _T]) -> _T:
    """Return what `read` returns, which is called twice where the file was replaced meanwhile."""
    try:
        return read()
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
    return read()


def refuse_stale(descriptor: int, path: Path) -> None:
    """Raise `ESTALE` when `path` is another file by now: a lock on a deleted file keeps nobody out."""
    with suppress(FileNotFoundError):
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


def write_line(descriptor: int, line: bytes) -> None:
    """Replace the line. It is never empty in between: readers take the first line, whatever follows it."""
    if os.pwrite(descriptor, line, 0) != len(line):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.ftruncate(descriptor, len(line))
    os.fsync(descriptor)


def line_of(holder: Holder) -> bytes:
    """Return the line that names `holder`."""
    return msgspec.json.encode(holder) + b"\n"


def holder_at(path: Path) -> Holder | None:
    """Return whom the file at `path` names, or None where it names nobody."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return holder_in(descriptor)
    finally:
        os.close(descriptor)


def holder_in(descriptor: int) -> Holder | None:
    """Return whom an open lock file names, or None where it names nobody."""
    line = os.pread(descriptor, _MOST_BYTES, 0).split(b"\n", 1)[0]
    try:
        holder = msgspec.json.decode(line, type=Holder)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
    return holder if holder.token and 0 < holder.pid < _LARGEST_PID else None


def ourselves(now: float, inode: int) -> Holder:
    """Return this process as a holder, with a token of its own."""
    return Holder(
        token=uuid4().hex,
        pid=os.getpid(),
        host=os.uname().nodename,
        boot=boot_name(),
        started=activity_and_start(os.getpid())[1],
        since=datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds"),
        inode=inode,
    )


def activity_and_start(pid: int) -> tuple[str, str]:
    """Return the letter of what a process does and its start in ticks since boot; both empty without `/proc`."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes().decode("ascii", "replace")
    except OSError:
        return "", ""
    fields = text.rpartition(")")[2].split()
    return fields[0], fields[19]


def boot_name() -> str:
    """Name this boot and pid namespace: within both, a pid and its start time name one process."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""

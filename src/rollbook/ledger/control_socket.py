"""The socket through which a live run is told what to do: where it lies, and who may use it.

Rules:
* It is there for as long as a process listens; what a dead one left is replaced by whoever holds the run's lock.
* Nobody but its owner can connect at any moment: the mode is set before it listens, and both ends ask who the other is.
* The length of its path does not matter: it is reached through an open descriptor where the system has such paths.
* What is no socket is never removed.

Source: collection.md §1.2.
"""

import errno
import os
import socket
import stat
import struct
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

import msgspec

_MODE: Final = 0o600
_BACKLOG: Final = 16
_DESCRIPTORS: Final = Path("/proc/self/fd")
_CREDENTIALS: Final = struct.Struct("3i")
_NO_CONTENT: Final[int | None] = getattr(os, "O_PATH", None)
_PEER: Final[int | None] = getattr(socket, "SO_PEERCRED", None)


class Peer(msgspec.Struct, frozen=True):
    """The process at the other end; where the system does not tell, its mode alone guards the socket."""

    pid: int | None = None
    uid: int | None = None

    @property
    def is_ours(self) -> bool:
        """Whether it runs for the same user as this process."""
        return self.uid is None or self.uid == os.geteuid()


class Listener(msgspec.Struct, frozen=True):
    """A socket that listens at `path`, non-blocking."""

    path: Path
    socket: socket.socket
    inode: int

    def close(self) -> None:
        """Stop listening, and remove the socket unless another took its place."""
        with suppress(OSError):
            if self.path.lstat().st_ino == self.inode:
                self.path.unlink()
        self.socket.close()


def listen_at(path: Path) -> Listener:
    """Listen at `path`, in place of a socket that was left there.

    Raises:
        OSError: its folder takes no sockets, or something else has that name.

    """
    listener = _new_socket()
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            inode = _placed(listener, path, folder)
        finally:
            os.close(folder)
    except BaseException:
        listener.close()
        raise
    listener.settimeout(0)
    return Listener(path, listener, inode)


def connect_to(path: Path, timeout: float) -> socket.socket:
    """Return a connection to whoever listens at `path`; its operations take `timeout` seconds at most.

    Raises:
        OSError: nobody does, or nobody who may be asked.

    """
    connection = _new_socket()
    connection.settimeout(timeout)
    try:
        _connect(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def peer_of(connection: socket.socket) -> Peer:
    """Return who is at the other end of `connection`."""
    if _PEER is None:
        return Peer()
    pid, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, _PEER, _CREDENTIALS.size))
    return Peer(pid, uid)


def _new_socket() -> socket.socket:
    if not hasattr(socket, "AF_UNIX"):
        raise OSError(errno.EAFNOSUPPORT, "this system has no Unix sockets")
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)


def _placed(listener: socket.socket, path: Path, folder: int) -> int:
    """Bind under a short name, listen, and only then give the socket its name; return its inode."""
    _refuse_other_file(path.name, folder)
    aside = f".{blake2b(path.name.encode(errors='surrogateescape'), digest_size=8).hexdigest()}.sock"
    _refuse_other_file(aside, folder)
    with suppress(FileNotFoundError):
        os.unlink(aside, dir_fd=folder)
    listener.bind(f"{_DESCRIPTORS}/{folder}/{aside}" if _DESCRIPTORS.is_dir() else str(path.with_name(aside)))
    try:
        os.chmod(aside, _MODE, dir_fd=folder)
        listener.listen(_BACKLOG)
        inode = os.stat(aside, dir_fd=folder, follow_symlinks=False).st_ino
        os.replace(aside, path.name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        os.unlink(aside, dir_fd=folder)
        raise
    return inode


def _refuse_other_file(name: str, folder: int) -> None:
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            raise FileExistsError(errno.EEXIST, "a file that is no socket has this name")


def _connect(connection: socket.socket, path: Path) -> None:
    if _NO_CONTENT is None or not _DESCRIPTORS.is_dir():
        connection.connect(str(path))
        return
    found = os.open(path, _NO_CONTENT | os.O_CLOEXEC)
    try:
        if not stat.S_ISSOCK(os.fstat(found).st_mode):
            raise ConnectionRefusedError(errno.ECONNREFUSED, "it is no socket")
        connection.connect(f"{_DESCRIPTORS}/{found}")
    finally:
        os.close(found)

"""What a run did to its folder, call by call, so that the folder can be rebuilt as it was after any byte.

Rules:
* Calls that change files below the folder are taken down in the order in which they were made; a lock is left out.
* A write is cut between any two of its bytes; every other call happens or does not.
* What was said beside it (a request that left) stands in the same order.
"""

import builtins
import fcntl
import io
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Written:
    """Bytes at `offset` of a file."""

    name: str
    offset: int
    data: bytes


@dataclass(frozen=True)
class Sized:
    """A file that exists with `size` bytes: made, or cut."""

    name: str
    size: int


@dataclass(frozen=True)
class Moved:
    """A file in the place of another."""

    name: str
    to: str


@dataclass(frozen=True)
class Removed:
    """A file that is gone."""

    name: str


@dataclass(frozen=True)
class Said:
    """Something that happened beside the files."""

    what: object


Call = Written | Sized | Moved | Removed | Said


@dataclass
class Stream:
    """The calls of one or several sessions."""

    calls: list[Call] = field(default_factory=list)

    @property
    def length(self) -> int:
        """How many steps it has: one a byte that was written, one a call of another kind."""
        return sum(map(_steps, self.calls))

    def until(self, steps: int) -> Iterator[Call]:
        """Yield what had happened after so many steps, the last write cut."""
        left = steps
        for call in self.calls:
            if isinstance(call, Said):
                yield call
            elif left >= _steps(call):
                yield call
                left -= _steps(call)
            else:
                if isinstance(call, Written) and left:
                    yield Written(call.name, call.offset, call.data[:left])
                return

    def pieces(self) -> Iterator[tuple[range, bool]]:
        """Yield the steps of each call, and whether it changes a file that is still in the making."""
        at = 0
        for call in self.calls:
            if not isinstance(call, Said):
                yield range(at, at + _steps(call)), isinstance(call, Written) and call.name.endswith(".tmp")
                at += _steps(call)


def _steps(call: Call) -> int:
    match call:
        case Written():
            return len(call.data)
        case Said():
            return 0
        case _:
            return 1


def folder_after(calls: Iterator[Call]) -> dict[str, bytes]:
    """Return the files that `calls` leave."""
    files: dict[str, bytearray] = {}
    for call in calls:
        match call:
            case Written(name, offset, data):
                files.setdefault(name, bytearray())[offset : offset + len(data)] = data
            case Sized(name, size):
                files[name] = files.get(name, bytearray())[:size].ljust(size, b"\0")
            case Moved(name, to):
                files[to] = files.pop(name)
            case Removed(name):
                files.pop(name, None)
    return {name: bytes(data) for name, data in files.items()}


class _Tapped(io.FileIO):
    """A raw file whose writes are taken down."""

    tap: "Tap"
    named: str

    def write(self, data: Any, /) -> int | None:  # the signature of `io.FileIO`
        with self.tap.lock:
            at = _next_offset(self.fileno())
            count = super().write(data)
            self.tap.stream.calls.append(Written(self.named, at, bytes(memoryview(data).cast("B")[:count])))
        return count

    def truncate(self, size: int | None = None, /) -> int:
        with self.tap.lock:
            size = super().truncate(size)
            self.tap.stream.calls.append(Sized(self.named, size))
        return size


class Tap:
    """Takes down what happens below `folder` while it is on."""

    def __init__(self, folder: Path, stream: Stream) -> None:
        self.folder, self.stream, self.lock = folder.resolve(), stream, threading.RLock()

    def say(self, what: object) -> None:
        """Put something in its place among the calls."""
        with self.lock:
            self.stream.calls.append(Said(what))

    @contextmanager
    def on(self) -> Iterator[None]:
        """Take calls down for as long as the block lasts."""
        replaced: list[tuple[Any, str, Any]] = []
        for owner, name, made in self._taps():
            replaced.append((owner, name, getattr(owner, name)))
            setattr(owner, name, made(getattr(owner, name)))
        try:
            yield
        finally:
            for owner, name, original in replaced:
                setattr(owner, name, original)

    def _taps(self) -> list[tuple[Any, str, Callable[[Any], Any]]]:
        moves = [(os, name, self._moving) for name in ("replace", "rename")]
        removals = [(os, name, self._removing) for name in ("unlink", "remove")]
        sizes = [(os, name, self._sizing) for name in ("truncate", "ftruncate")]
        writes = [(os, "write", self._writing), (os, "writev", self._writing_pieces), (os, "open", self._making)]
        opens = [(owner, "open", self._opening) for owner in (io, builtins)]
        return [*moves, *removals, *sizes, *writes, *opens]

    def _name(self, place: Any) -> str | None:
        """Return the name in the folder of a path or a descriptor; None for anything else, and for locks."""
        path = Path(f"/proc/self/fd/{place}").readlink() if isinstance(place, int) else Path(os.fsdecode(place))
        inside = path.parent.resolve() == self.folder and not path.name.endswith(".lock")
        return path.name if inside else None

    def _moving(self, real: Callable[..., None]) -> Callable[..., None]:
        def moved(source: Any, target: Any, **more: Any) -> None:
            with self.lock:
                real(source, target, **more)
                name, to = self._name(source), self._name(target)
                if name and to:
                    self.stream.calls.append(Moved(name, to))

        return moved

    def _removing(self, real: Callable[..., None]) -> Callable[..., None]:
        def removed(path: Any, **more: Any) -> None:
            with self.lock:
                real(path, **more)
                if "dir_fd" not in more and (name := self._name(path)):
                    self.stream.calls.append(Removed(name))

        return removed

    def _sizing(self, real: Callable[..., None]) -> Callable[..., None]:
        def sized(place: Any, size: int) -> None:
            with self.lock:
                real(place, size)
                if name := self._name(place):
                    self.stream.calls.append(Sized(name, size))

        return sized

    def _writing(self, real: Callable[..., int]) -> Callable[..., int]:
        def wrote(descriptor: int, data: Any) -> int:
            with self.lock:
                name = self._name(descriptor)
                at = _next_offset(descriptor) if name else 0
                count = real(descriptor, data)
                if name:
                    self.stream.calls.append(Written(name, at, bytes(memoryview(data).cast("B")[:count])))
            return count

        return wrote

    def _writing_pieces(self, real: Callable[..., int]) -> Callable[..., int]:
        def wrote(descriptor: int, pieces: Any) -> int:
            with self.lock:
                name = self._name(descriptor)
                at = _next_offset(descriptor) if name else 0
                count = real(descriptor, pieces)
                if name:
                    self.stream.calls.append(Written(name, at, b"".join(map(bytes, pieces))[:count]))
            return count

        return wrote

    def _making(self, real: Callable[..., int]) -> Callable[..., int]:
        def made(path: Any, flags: int, *more: Any, **named: Any) -> int:
            with self.lock:
                fresh = flags & os.O_TRUNC or (flags & os.O_CREAT and not os.path.lexists(path))
                descriptor = real(path, flags, *more, **named)
                if fresh and (name := self._name(path)):
                    self.stream.calls.append(Sized(name, 0))
            return descriptor

        return made

    def _opening(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def opened(file: Any, mode: str = "r", buffering: int = -1, *more: Any, **named: Any) -> Any:
            name = self._name(file) if any(letter in mode for letter in "wax+") else None
            if name is None:
                return real(file, mode, buffering, *more, **named)
            return self._tapped(file, mode, buffering, name, named)

        return opened

    def _tapped(self, file: Any, mode: str, buffering: int, name: str, named: dict[str, Any]) -> Any:
        with self.lock:
            fresh = "w" in mode or (not isinstance(file, int) and not os.path.lexists(file))
            raw = _Tapped(file, mode.replace("b", "").replace("t", ""))
            raw.tap, raw.named = self, name
            if fresh:
                self.stream.calls.append(Sized(name, 0))
        if buffering == 0:
            return raw
        buffered = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw, max(buffering, 0) or 8192)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, named.get("encoding") or "utf-8")


def _next_offset(descriptor: int) -> int:
    """Return where the next write to `descriptor` goes."""
    if fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_APPEND:
        return os.fstat(descriptor).st_size
    return os.lseek(descriptor, 0, os.SEEK_CUR)

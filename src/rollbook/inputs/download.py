"""One file from the net: bounded, whole or not there, gone on with where it was left.

Rules:
* A file is in its place once all of it came, and not before; what came of it lies beside it as `.part`.
* A part is gone on with only where the server says, by its tag, that the file is still the same.
* What came is recorded beside the file: its address, length and SHA-256.
* One process fetches a file, and whoever else wants it waits for it.

Source: RFC 9110 §13.1.5, §14 (If-Range, Range).
"""

import fcntl
import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from io import BufferedRandom
from pathlib import Path
from typing import Final, Protocol, cast
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import msgspec

_TIMEOUT_SECONDS: Final = 30.0
_CHUNK: Final = 1 << 18
_TRIES: Final = 5
_PARTIAL: Final = 206
_NO_SUCH_RANGE: Final = 416
_SCHEMES: Final = ("https://", "http://")


class DownloadError(Exception):
    """A file that cannot be fetched, and why."""


class Open(Protocol):
    """Asks an address with headers added, and returns the reply; raises OSError or HTTPException."""

    def __call__(self, address: str, headers: Mapping[str, str]) -> HTTPResponse:
        """Return the reply."""
        ...


class Fetched(msgspec.Struct, frozen=True):
    """What is recorded of a file that was fetched."""

    address: str
    bytes: int
    sha256: str


class _CutOffError(Exception):
    """A reply that ended before its end."""


def opened_address(address: str, headers: Mapping[str, str]) -> HTTPResponse:
    """Ask `address`; redirections are followed."""
    request = Request(address, headers={"User-Agent": "rollbook", "Accept-Encoding": "identity", **headers})  # noqa: S310  checked by `download`
    return cast("HTTPResponse", urlopen(request, timeout=_TIMEOUT_SECONDS))  # noqa: S310  the same


def download(address: str, place: Path, most_bytes: int, open_address: Open = opened_address) -> Path:
    """Fetch `address` into `place`, unless it is there, and return `place`; what it is goes into `<place>.json`.

    Raises:
        DownloadError: it cannot be fetched, or is longer than `most_bytes`.

    """
    if not address.startswith(_SCHEMES):
        raise DownloadError(f"{address} is no address of the web")
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with _alone(place.parent):
            if not place.exists():
                with _part_of(place) as part:
                    _fetch(address, part, place, most_bytes, open_address)
    except (OSError, HTTPException) as error:
        raise DownloadError(str(error) or type(error).__name__) from error
    return place


def _fetch(address: str, part: BufferedRandom, place: Path, most_bytes: int, open_address: Open) -> None:
    for _ in range(_TRIES):
        before = part.seek(0, os.SEEK_END)
        try:
            _go_on(address, part, _beside(place, ".part.tag"), most_bytes, open_address)
        except _CutOffError as error:
            if part.seek(0, os.SEEK_END) <= before:
                raise DownloadError(f"{error}; what came is kept, and gone on with next time") from error
        else:
            _finish(address, part, place)
            return
    raise DownloadError("the connection broke again and again; what came is kept, and gone on with next time")


def _go_on(address: str, part: BufferedRandom, tag: Path, most_bytes: int, open_address: Open) -> None:
    """Ask for what is missing of `part`, and write it there; from its start where the file is another by now."""
    here, known = part.seek(0, os.SEEK_END), _tag_in(tag)
    headers = {"Range": f"bytes={here}-", "If-Range": known} if here and known else {}
    try:
        reply = open_address(address, headers)
    except HTTPError as error:
        if error.code != _NO_SUCH_RANGE:
            raise DownloadError(f"HTTP {error.code} {error.reason}") from error
        tag.unlink(missing_ok=True)
        raise _CutOffError("the server has no more of it than came before") from error
    with reply:
        if reply.status != _PARTIAL or reply.headers.get("Content-Range", "").split("-")[0] != f"bytes {here}":
            part.seek(0)
            part.truncate()
        tag.write_text(reply.headers.get("ETag") or "", encoding="utf-8")
        _take(reply, part, most_bytes)


def _take(reply: HTTPResponse, part: BufferedRandom, most_bytes: int) -> None:
    length = reply.headers.get("Content-Length", "")
    start = part.tell()
    whole = start + int(length) if length.isdigit() else None
    if whole is not None and whole > most_bytes:
        raise DownloadError(f"it is {whole} bytes long, and {most_bytes} are allowed")
    try:
        while chunk := reply.read(_CHUNK):
            part.write(chunk)
            if part.tell() > most_bytes:
                raise DownloadError(f"it is longer than the {most_bytes} bytes that are allowed")
    except (OSError, HTTPException) as error:
        raise _CutOffError(f"the connection broke after {part.tell()} bytes ({error})") from error
    if whole is not None and part.tell() < whole:
        raise _CutOffError(f"the connection broke after {part.tell()} of {whole} bytes")


def _finish(address: str, part: BufferedRandom, place: Path) -> None:
    part.flush()
    os.fsync(part.fileno())
    part.seek(0)
    record = Fetched(address, os.fstat(part.fileno()).st_size, hashlib.file_digest(part, "sha256").hexdigest())
    _beside(place, ".json").write_bytes(msgspec.json.encode(record) + b"\n")
    _beside(place, ".part").replace(place)
    _beside(place, ".part.tag").unlink(missing_ok=True)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Be the only process that fetches into a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _part_of(place: Path) -> Iterator[BufferedRandom]:
    """Open what came so far; where nothing did, nothing is left behind."""
    path = _beside(place, ".part")
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644), "r+b") as part:
        try:
            yield part
        finally:
            if path.exists() and not os.fstat(part.fileno()).st_size:
                path.unlink()
                _beside(place, ".part.tag").unlink(missing_ok=True)


def _beside(place: Path, ending: str) -> Path:
    return place.with_name(place.name + ending)


def _tag_in(path: Path) -> str:
    """Return the tag that a part was sent with, empty where it had none that tells two files apart."""
    text = path.read_text(encoding="utf-8") if path.is_file() else ""
    return "" if text.startswith("W/") else text

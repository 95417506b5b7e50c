"""The entries of an inspect_ai archive (`.eval`), one at a time and within bounds.

Rules:
* An entry's name is a name: nothing is ever written to where it points.
* What an entry inflates to is bounded, and so is what all of them do: an archive is data of somebody else.
* Entries may be stored, deflated or compressed with Zstandard, which needs a package of its own before Python 3.14.

Source: the ZIP application note (APPNOTE.TXT 6.3.10), §4.3.7, §4.4.5; RFC 8878.
"""

import importlib
import struct
import zipfile
import zlib
from pathlib import Path
from types import ModuleType
from typing import Final

from rollbook.inputs.logged import LogError

MOST_BYTES: Final = 512 << 20
"""What one entry may inflate to."""
MOST_TIMES: Final = 1000
"""How many times the archive's own size all entries together may inflate to, besides `MOST_BYTES`."""

_ZSTANDARD: Final = 93
_ENCRYPTED: Final = 1
_LOCAL_HEADER: Final = struct.Struct("<4s22xHH")
_MAGIC: Final = b"PK\x03\x04"
_RAISED: Final = (
    *(zipfile.BadZipFile, NotImplementedError, OSError, ValueError, EOFError, OverflowError, RuntimeError),
    *(struct.error, zlib.error),
)


class Archive:
    """An archive that is read entry by entry. `names`: each once; of entries with one name the last counts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            with zipfile.ZipFile(path) as archive:
                self._entries = {entry.filename: entry for entry in archive.infolist()}
            self._left = MOST_BYTES + MOST_TIMES * path.stat().st_size
        except _RAISED as error:
            raise LogError(f"{path}: no whole archive: {error}") from None
        self.names = tuple(self._entries)

    def __contains__(self, name: object) -> bool:
        """Whether there is an entry of that name."""
        return name in self._entries

    def read(self, name: str) -> bytes:
        """Return what the entry `name` holds.

        Raises:
            LogError: it is damaged, encrypted, too large, or compressed in a way that is not known here.

        """
        entry = self._entries[name]
        try:
            text = self._inflated(entry)
        except _RAISED as error:
            raise self._error(name, str(error) or type(error).__name__) from None
        if len(text) > min(MOST_BYTES, self._left):
            raise self._error(name, f"it inflates to more than is read ({MOST_BYTES >> 20} MiB an entry)")
        self._left -= len(text)
        if zlib.crc32(text) != entry.CRC:
            raise self._error(name, "its checksum differs: the archive is damaged")
        return text

    def _inflated(self, entry: zipfile.ZipInfo) -> bytes:
        most = min(MOST_BYTES, self._left) + 1
        if entry.flag_bits & _ENCRYPTED:
            raise ValueError("it is encrypted")
        raw = self._raw(entry, most)
        match entry.compress_type:
            case zipfile.ZIP_STORED:
                return raw
            case zipfile.ZIP_DEFLATED:
                return zlib.decompressobj(-zlib.MAX_WBITS).decompress(raw, most)
            case code if code == _ZSTANDARD:
                return _unpacked(raw, most)
        raise ValueError(f"compressed in a way that is not read here ({entry.compress_type})")

    def _raw(self, entry: zipfile.ZipInfo, most: int) -> bytes:
        with self._path.open("rb") as file:
            file.seek(entry.header_offset)
            magic, name, extra = _LOCAL_HEADER.unpack(file.read(_LOCAL_HEADER.size))
            if magic != _MAGIC:
                raise ValueError("no entry begins where the directory says")
            file.seek(name + extra, 1)
            raw = file.read(min(entry.compress_size, most))
        if len(raw) < min(entry.compress_size, most):
            raise ValueError("it is cut short")
        return raw

    def _error(self, name: str, said: str) -> LogError:
        return LogError(f"{self._path}: {name}: {said}")


def _unpacked(raw: bytes, most: int) -> bytes:
    """Return what Zstandard packed, of it the first `most` bytes."""
    zstandard = _zstandard()
    try:
        with zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True) as reader:
            text: bytes = reader.read(most)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from None
    return text


def _zstandard() -> ModuleType:
    try:
        return importlib.import_module("zstandard")
    except ImportError:
        raise LogError(
            "this log is compressed with Zstandard: pip install 'rollbook[inspect]' (or zstandard) to read it"
        ) from None

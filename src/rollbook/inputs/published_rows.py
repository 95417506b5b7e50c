"""The rows of a published file, in the forms in which benchmarks are published: JSON Lines and CSV, perhaps packed.

Rules:
* A row knows its file and line, and what is wrong with one is told with both.
* A byte-order mark, CRLF line ends and empty lines are nobody's data.
* What is packed unpacks to a bounded size.

Source: RFC 4180 for CSV.
"""

import csv
import gzip
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from rollbook.errors import InputError
from rollbook.inputs.jsonl import read_source_rows
from rollbook.inputs.prepared_rows import whole_file
from rollbook.records.json_values import JsonObject

T = TypeVar("T")

_GZIP: Final = b"\x1f\x8b"
_CHUNK: Final = 1 << 20
_SHOWN: Final = 60
_NAMES: Final = {str: "a text", list: "a list", dict: "an object", int: "a whole number"}


class PublishedRow(msgspec.Struct, frozen=True):
    """One row of a published file: its fields, and where it stands, as `file:line`."""

    place: str
    fields: JsonObject

    def text(self, name: str) -> str:
        """Return a field that holds a text with something in it.

        Raises:
            InputError: it does not.

        """
        value = self._of_type(name, str)
        if not value.strip():
            raise self.fault(f"`{name}` is empty")
        return value

    def objects(self, name: str) -> list[JsonObject]:
        """Return a field that holds a list of objects; null in it is one without anything.

        Raises:
            InputError: it does not.

        """
        values = [{} if value is None else value for value in self._of_type(name, list)]
        if not all(isinstance(value, dict) for value in values):
            raise self.fault(f"`{name}` holds something else than objects")
        return values

    def texts(self, name: str) -> list[str]:
        """Return a field that holds a list of texts.

        Raises:
            InputError: it does not.

        """
        values = self._of_type(name, list)
        if not all(isinstance(value, str) for value in values):
            raise self.fault(f"`{name}` holds something else than texts")
        return values

    def number(self, name: str) -> int:
        """Return a field that holds a whole number.

        Raises:
            InputError: it does not.

        """
        return self._of_type(name, int)

    def fault(self, what: str) -> InputError:
        """Return the error that says what is wrong with this row."""
        return InputError(f"{self.place}: {what}")

    def _of_type(self, name: str, kind: type[T]) -> T:
        if name not in self.fields:
            there = ", ".join(f"`{field}`" for field in self.fields) or "nothing"
            raise self.fault(f"`{name}` is missing; there is {there}")
        value = self.fields[name]
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.fault(f"`{name}` is not {_NAMES[kind]}: {str(value)[:_SHOWN]!r}")
        return value


def published_json_rows(path: Path) -> Iterator[PublishedRow]:
    """Yield the rows of a JSON Lines file.

    Raises:
        InputError: the file holds no row, or lines that are no JSON object; names all of them, after the last.

    """
    for row in read_source_rows(path):
        yield PublishedRow(row.place, row.row)


def published_csv_rows(content: bytes, label: str, columns: Sequence[str] = ()) -> Iterator[PublishedRow]:
    """Yield the rows of a CSV file; `label` names it in messages.

    Without `columns` its first line names them; with `columns` it has no such line, and every line has as many fields.

    Raises:
        InputError: it is no UTF-8, holds no row, or a line has more or fewer fields than there are columns.

    """
    reader = csv.reader(io.StringIO(_decoded(content, label), newline=""))
    names, rows, line = list(columns), 0, 1
    try:
        for cells in reader:
            start, line = line, reader.line_num + 1
            if not cells:
                continue
            if not names:
                names = cells
                continue
            if len(cells) != len(names):
                raise InputError(f"{label}:{start}: {len(cells)} fields, and there are {len(names)} columns")
            rows += 1
            yield PublishedRow(f"{label}:{start}", dict(zip(names, cells, strict=True)))
    except csv.Error as error:
        raise InputError(f"{label}:{line}: no CSV: {error}") from error
    if not rows:
        raise InputError(f"{label}: the file holds no rows")


def _decoded(content: bytes, label: str) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{label}:{line}: byte {error.start} is no UTF-8; the file is damaged or no text") from error


def unpacked_file(path: Path, folder: Path, most_bytes: int) -> Path:
    """Return `path`, or where it is packed by gzip, a file in `folder` with what it unpacks to.

    Raises:
        InputError: it cannot be unpacked, or to more than `most_bytes` bytes.

    """
    with path.open("rb") as file:
        if file.read(len(_GZIP)) != _GZIP:
            return path
    place = folder / (path.name.removesuffix(".gz") if path.suffix == ".gz" else f"{path.name}.plain")
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(place) as target, gzip.open(path) as packed:
        try:
            while chunk := packed.read(_CHUNK):
                target.write(chunk)
                if target.tell() > most_bytes:
                    raise InputError(f"{path}: it unpacks to more than {most_bytes} bytes; this is another file")
        except (EOFError, OSError, zlib.error) as error:
            raise InputError(f"{path}: it cannot be unpacked: {error}; fetch it again") from error
    return place

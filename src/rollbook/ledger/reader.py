"""A run's files → lines and records, in the order in which they were written.

Rules:
* A last line that is whole JSON and lacks its newline alone is a line, as it is where a run goes on: its text is given
  with a newline, and its length without. Any other line without its newline was not committed and is no record.
* Lines of white space are nobody's record; neither are a byte-order mark and CRLF, which editors put in.
* A huge line is read in pieces, without the values that nothing decides by; whether it lacks its newline alone is
  asked of all of it. A plan's lines are sent and compared: where they are more than counted, they are read as they
  stand.
* A line that cannot be read is named with file and line; what to do with it is the reader's business.

Source: collection.md §1.6, §5.4.1; cases RC-14, RC-58.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from rollbook.errors import LedgerError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.projection import BOM, TopLevelProjector
from rollbook.ledger.tail import is_whole_row
from rollbook.records.keys import BULKY_KEYS
from rollbook.records.place import Block, File, Place
from rollbook.records.reading import UNREADABLE, read_row
from rollbook.records.record import Record

_LONGEST: Final = 8 << 20
_PIECE: Final = 1 << 20
_BLOCK: Final = 1 << 16
_NEWLINE: Final = ord("\n")

OnDamage = Callable[[LedgerError], None]
PlainLine = tuple[int, int, int, bytes]
_Rest = Callable[[BinaryIO, bytes], tuple[bytes, int]]


class Line(NamedTuple):
    """One committed line: its number from 1, its first byte, its bytes in the file, and its text without newline."""

    number: int
    offset: int
    length: int
    text: bytes


def raise_damage(error: LedgerError) -> None:
    """Let nothing pass that cannot be read."""
    raise error


def scan(path: Path, limit: int | None = None) -> Iterator[Line]:
    """Yield the committed lines of `path` (of its first `limit` bytes); nothing if it is absent."""
    for number, offset, length, raw in plain_lines(path, limit):
        yield Line(number, offset, length, raw.rstrip())


def scan_whole(path: Path, limit: int | None = None) -> Iterator[Line]:
    """Yield what `scan` yields, with everything that a huge line holds."""
    for number, offset, length, raw in whole_lines(path, limit):
        yield Line(number, offset, length, raw.rstrip())


def plain_lines(path: Path, limit: int | None = None) -> Iterator[PlainLine]:
    """Yield what `scan` yields, without names and with the line's end: for loops over very many lines."""
    return _lines(path, limit, _decisive_rest)


def plain_blocks(path: Path, limit: int | None = None) -> Iterator[Block]:
    """Yield what `plain_lines` yields, some lines at a time, with lines of white space among them."""
    if not path.exists():
        return
    with path.open("rb", buffering=_PIECE) as file:
        number, offset = 1, 0
        while texts := _some_lines(file):
            lengths = list(map(len, texts))
            if texts[-1][-1] != _NEWLINE:
                texts[-1], lengths[-1] = _decisive_rest(file, texts[-1])
            end = offset + sum(lengths)
            is_last = not texts[-1] or (limit is not None and end > limit)
            while texts and (not texts[-1] or (limit is not None and end > limit)):
                texts.pop()
                end -= lengths.pop()
            if texts:
                texts[0] = texts[0].removeprefix(BOM) if number == 1 else texts[0]
                yield Block(number, offset, lengths, texts)
            if is_last:
                return
            number, offset = number + len(texts), end


def _some_lines(file: BinaryIO) -> list[bytes]:
    """Return the next lines; the last one alone may lack its end, as it is huge or the file ends within it."""
    readline, texts, left = file.readline, [], _BLOCK
    while left > 0 and (raw := readline(_LONGEST)):
        texts.append(raw)
        left -= len(raw)
    return texts


def whole_lines(path: Path, limit: int | None = None) -> Iterator[PlainLine]:
    """Yield what `plain_lines` yields, with everything that a huge line holds."""
    return _lines(path, limit, _whole_rest)


def _lines(path: Path, limit: int | None, rest: _Rest) -> Iterator[PlainLine]:
    if not path.exists():
        return
    with path.open("rb", buffering=_PIECE) as file:
        offset = number = 0
        readline = file.readline
        while raw := readline(_LONGEST):
            number += 1
            length = len(raw)
            if raw[-1] != _NEWLINE:
                raw, length = rest(file, raw)
            if not raw or (limit is not None and offset + length > limit):
                return
            if number == 1:
                raw = raw.removeprefix(BOM)
            if not raw.isspace():
                yield number, offset, length, raw
            offset += length


def _decisive_rest(file: BinaryIO, start: bytes) -> tuple[bytes, int]:
    """Return a long line without its bulky values, and its whole length; nothing of one that was never committed."""
    projector, length = TopLevelProjector(BULKY_KEYS), len(start)
    begin = file.tell() - length
    projector.feed(start)
    for piece in _further(file):
        projector.feed(piece)
        length += len(piece)
        if piece[-1] == _NEWLINE:
            return projector.result(), length
    if length == len(start):
        return _unterminated(start, begin, length)
    lean = projector.result()
    if not is_whole_row(lean, starts_file=begin == 0):
        return b"", 0
    file.seek(begin)
    return (lean + b"\n", length) if is_whole_row(file.read(length), starts_file=begin == 0) else (b"", 0)


def _whole_rest(file: BinaryIO, start: bytes) -> tuple[bytes, int]:
    """Return a long line and its length; nothing of one that was never committed. In memory it is there once."""
    length = len(start)
    begin = file.tell() - length
    for piece in _further(file):
        length += len(piece)
        if piece[-1] == _NEWLINE:
            file.seek(begin)
            return file.read(length), length
    file.seek(begin)
    return _unterminated(file.read(length), begin, length)


def _unterminated(line: bytes, begin: int, length: int) -> tuple[bytes, int]:
    """Return the last line of a file with the newline that it lacks, where it lacks nothing else."""
    return (line + b"\n", length) if is_whole_row(line, starts_file=begin == 0) else (b"", 0)


def _further(file: BinaryIO) -> Iterator[bytes]:
    """Yield what follows of a line, and of those after it, in pieces."""
    while piece := file.readline(_PIECE):
        yield piece


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without newline) for each committed line of `path`; nothing if it is absent."""
    if not path.exists():
        return
    with path.open("rb", buffering=1 << 20) as file:
        number = 0
        while line := file.readline():
            number += 1
            is_line = line.endswith(b"\n") or is_whole_row(line, starts_file=number == 1)
            line = line.removeprefix(BOM) if number == 1 else line
            if is_line and not line.isspace():
                line = line.rstrip(b"\r\n")  # in its place: of a huge row there is one copy
                yield number, line


def read_records(
    paths: RunPaths, limits: Mapping[File, int] | None = None, on_damage: OnDamage = raise_damage
) -> Iterator[Record]:
    """Yield the records of both files, failures first; of each file its first bytes, where `limits` say how many.

    Raises:
        LedgerError: a committed line is no record; names file and line.

    """
    for path, file in ((paths.failures, File.FAILURES), (paths.output, File.RESULTS)):
        yield from records_in(path, file, limits[file] if limits else None, on_damage)


def records_in(
    path: Path, file: File, limit: int | None = None, on_damage: OnDamage = raise_damage
) -> Iterator[Record]:
    """Yield the records of one file, of its first `limit` bytes."""
    for line in scan(path, limit):
        try:
            record = read_row(line.text, file, Place(file, line.offset, line.length, line.number))
        except UNREADABLE as error:
            on_damage(not_a_record(path, line.number, error))
        else:
            yield record


def payload_at(path: Path, place: Place) -> bytes:
    """Return the text of the line at `place` of `path`.

    Raises:
        LedgerError: the file is shorter now, or another line lies there.

    """
    with path.open("rb") as file:
        file.seek(place.offset)
        raw = file.read(place.length)
        end = raw[-1:] if raw.endswith(b"\n") else file.read(1)
    if len(raw) != place.length or end not in {b"", b"\n"} or b"\n" in raw[:-1]:
        raise LedgerError(f"{path}:{place.line}: the file was replaced while it was read; read it again")
    return (raw if place.offset else raw.removeprefix(BOM)).rstrip()


def not_a_record(path: Path, number: int, error: Exception) -> LedgerError:
    """Return what is said of a committed line that is no record."""
    return LedgerError(f"{path}:{number}: not a rollout record: {error}")

"""The lines of result files, found without being kept, and read again part by part.

Rules:
* Finding them takes one pass in blocks of one size, whatever the lines hold; the file's digest falls out of it.
* Lines of white space are nobody's record. A last line without its newline is one, which may be torn.
* A line beyond the size of rows that are parsed as a whole is read without its bulky values: what they would have
  shown is then unobserved.

Source: collection.md §7.1, §5.4.1; case RC-14.
"""

import hashlib
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from rollbook.ledger.projection import BOM, PROJECTED_ROW_BYTES, TopLevelProjector
from rollbook.records.keys import BULKY_KEYS

_BLOCK: Final = 1 << 20
_MOST_LINES: Final = 128
_PARTS_EACH: Final = 4


class Part(msgspec.Struct, array_like=True, frozen=True):
    """Some consecutive lines of one input: bytes `start` to `end`, the first line's number, its ordinal of all."""

    path: str
    file: int
    start: int
    end: int
    line: int
    ordinal: int
    ignored: int


class LineIndex(msgspec.Struct, frozen=True):
    """Where the lines of a file begin that are not blank, and their numbers from 1."""

    path: Path
    size: int
    sha256: str
    starts: "array[int]"
    numbers: "array[int]"


def line_index(path: Path) -> LineIndex:
    """Find the lines of `path`.

    Raises:
        OSError: the file cannot be read.

    """
    starts, numbers, digest = array("Q"), array("Q"), hashlib.sha256()
    at = line_start = 0
    number, is_blank = 1, True
    with path.open("rb", buffering=0) as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            begin = 0
            while (newline := block.find(b"\n", begin)) >= 0:
                if not (is_blank and _blank(block[begin:newline])):
                    starts.append(line_start)
                    numbers.append(number)
                begin, is_blank = newline + 1, True
                line_start, number = at + begin, number + 1
            is_blank = is_blank and _blank(block[begin:])
            at += len(block)
    if not is_blank:
        starts.append(line_start)
        numbers.append(number)
    return LineIndex(path, at, digest.hexdigest(), starts, numbers)


def _blank(text: bytes) -> bool:
    return not text or text.isspace()


def parts_of(indexes: Sequence[LineIndex], workers: int, ignored: int) -> Iterator[Part]:
    """Cut all lines into parts, small enough that `workers` have about the same to do."""
    total = sum(len(index.starts) for index in indexes)
    lines = max(1, min(-(-total // (_PARTS_EACH * workers)), _MOST_LINES))
    ordinal = 0
    for file, index in enumerate(indexes):
        for first in range(0, len(index.starts), lines):
            end = index.starts[first + lines] if first + lines < len(index.starts) else index.size
            yield Part(str(index.path), file, index.starts[first], end, index.numbers[first], ordinal + first, ignored)
        ordinal += len(index.starts)


def singles_of(part: Part) -> Iterator[Part]:
    """Cut `part` into one part for each of its lines."""
    ordinal = part.ordinal
    for line, start, length in _spans(part):
        yield Part(part.path, part.file, start, start + length, line, ordinal, part.ignored)
        ordinal += 1


def _spans(part: Part) -> Iterator[tuple[int, int, int]]:
    at, number = part.start, part.line
    with Path(part.path).open("rb") as file:
        file.seek(part.start)
        while at < part.end:
            length, is_blank = _passed(file, part.end - at)
            if length == 0:
                return
            if not is_blank:
                yield number, at, length
            at, number = at + length, number + 1


def _passed(file: BinaryIO, most: int) -> tuple[int, bool]:
    """Go past one line; return its length, and whether it is blank."""
    length, is_blank = 0, True
    while length < most and (piece := file.readline(min(_BLOCK, most - length))):
        length += len(piece)
        is_blank = is_blank and _blank(piece)
        if piece.endswith(b"\n"):
            break
    return length, is_blank


def lines_of(part: Part) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of `part` that are not blank, with their numbers.

    Raises:
        OSError: the file cannot be read.

    """
    at, number = part.start, part.line
    with Path(part.path).open("rb", buffering=_BLOCK) as file:
        file.seek(part.start)
        while at < part.end:
            text, length = _line(file, part.end - at)
            if length == 0:
                return
            text = text.removeprefix(BOM) if at == 0 else text
            if not _blank(text):
                yield number, text.rstrip()
            at, number = at + length, number + 1


def _line(file: BinaryIO, most: int) -> tuple[bytes, int]:
    """Return the next line, of at most `most` bytes, and its length."""
    text = file.readline(min(most, PROJECTED_ROW_BYTES))
    if text.endswith(b"\n") or len(text) < PROJECTED_ROW_BYTES or len(text) == most:
        return text, len(text)
    projector, length = TopLevelProjector(BULKY_KEYS), len(text)
    projector.feed(text)
    while length < most and (piece := file.readline(min(most - length, _BLOCK))):
        projector.feed(piece)
        length += len(piece)
        if piece.endswith(b"\n"):
            break
    return projector.result(), length

"""A run's files → lines and records, in the order in which they were written.

Rules:
* A line without its newline was not committed and is no record.
* Lines of white space are nobody's record; neither are a byte-order mark and CRLF, which editors put in.
* A line that cannot be read is named with file and line; what to do with it is the reader's business.

Source: collection.md §1.6, §5.4.1; case RC-58.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from rollbook.errors import LedgerError
from rollbook.ledger.paths import RunPaths
from rollbook.records.codec import File, read_row
from rollbook.records.record import Record

_BOM: Final = b"\xef\xbb\xbf"


def read_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield (line number from 1, line without newline) for each committed line of `path`; nothing if it is absent."""
    if not path.exists():
        return
    with path.open("rb", buffering=1 << 20) as file:
        for number, raw in enumerate(file, start=1):
            line = raw.removeprefix(_BOM) if number == 1 else raw
            if line.endswith(b"\n") and line.strip():
                yield number, line.rstrip(b"\r\n")


def read_records(paths: RunPaths) -> Iterator[Record]:
    """Yield the records of both files, failures first.

    Raises:
        LedgerError: a committed line is no record; names file and line.

    """
    for path, file in ((paths.failures, File.FAILURES), (paths.output, File.RESULTS)):
        for number, line in read_lines(path):
            yield record_at(path, number, line, file)


def record_at(path: Path, number: int, line: bytes, file: File) -> Record:
    """Read one committed line.

    Raises:
        LedgerError: it is no record; names file and line.

    """
    try:
        return read_row(line, file)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise LedgerError(
            f"{path}:{number}: not a rollout record: {error}. Nothing was changed; mend the line, then run again"
        ) from error

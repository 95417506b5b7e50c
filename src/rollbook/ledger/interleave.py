"""Rows in the order of their repeats: all first ones, then all second ones, each in the order they came.

Rules:
* Rows wait in a temporary file; what is kept in memory is where each begins: eight bytes a row.
* The file has no name, so that nothing is left of it however a run ends.

Source: collection.md §2.5.
"""

import tempfile
from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import IO

import msgspec

from rollbook.errors import LedgerError
from rollbook.records.codec import encode
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME
from rollbook.records.json_values import JsonObject


def interleaved(rows: Iterable[JsonObject]) -> Iterator[JsonObject]:
    """Yield `rows` by rollout index, stably.

    Raises:
        LedgerError: the folder for temporary files has no room for the plan.

    """
    with tempfile.TemporaryFile(buffering=1 << 20) as file:
        starts = _set_aside(file, rows)
        for repeat in sorted(starts):
            for start in starts[repeat]:
                file.seek(start)
                yield msgspec.json.decode(file.readline(), type=dict[str, object])


def _set_aside(file: IO[bytes], rows: Iterable[JsonObject]) -> "dict[int, array[int]]":
    starts: defaultdict[int, array[int]] = defaultdict(lambda: array("Q"))
    start = 0
    for row in rows:
        line = encode(row) + b"\n"
        with _explained():
            file.write(line)
        starts[_repeat_of(row)].append(start)
        start += len(line)
    with _explained():
        file.flush()
    return starts


def _repeat_of(row: JsonObject) -> int:
    index = row[ROLLOUT_INDEX_KEY_NAME]
    return index if isinstance(index, int) else 0


@contextmanager
def _explained() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise LedgerError(
            f"{tempfile.gettempdir()}: no interleaved plan could be set aside there: {error}. "
            "Free some room, or name another folder in TMPDIR"
        ) from error

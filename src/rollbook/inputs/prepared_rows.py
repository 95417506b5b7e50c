"""The rows that a benchmark's script makes of a published file, and the data set that it writes.

Rules:
* The same file makes the same bytes: nothing here depends on the time, the machine or an order that changes.
* Every faulty row is found before anything is written; the first few are listed, the rest counted.
* The data set is there whole or not at all, with as many rows as its benchmark has, and no id twice.

Source: servers.md §8.10.
"""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, TypeVar

from rollbook.errors import InputError
from rollbook.records.json_values import JsonObject

Row = TypeVar("Row")

_LISTED: Final = 5


def prepared_rows(published: Iterable[Row], convert: Callable[[Row], JsonObject]) -> list[JsonObject]:
    """Return what `convert` makes of each published row.

    Raises:
        InputError: rows that it refuses; names them all, with file and line.

    """
    rows: list[JsonObject] = []
    faults: list[str] = []
    for row in published:
        try:
            rows.append(convert(row))
        except InputError as error:
            faults.append(str(error))
    if faults:
        more = f"; and {len(faults) - _LISTED} more" if len(faults) > _LISTED else ""
        raise InputError(f"{'; '.join(faults[:_LISTED])}{more}. Mend the rows, or fetch the published file again")
    return rows


def write_prepared_rows(
    jsonl_fpath: str | os.PathLike[str], rows: Sequence[JsonObject], expected_rows: int | None = None
) -> Path:
    """Write a data set, one row a line, and return its path; `expected_rows` is how many there are to be.

    A row's `id` tells it from the others.

    Raises:
        InputError: another number of rows, none, or an id twice.

    """
    path = Path(jsonl_fpath)
    if not rows:
        raise InputError(f"{path}: there are no rows to write")
    if expected_rows and len(rows) != expected_rows:
        raise InputError(
            f"{len(rows)} rows, and the published file has {expected_rows}; fetch it again, or take what is there: "
            "+prepare_script_args.expected_rows=0"
        )
    _refuse_doubles(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        for row in rows:
            file.write(json.dumps(row, ensure_ascii=False).encode("utf-8") + b"\n")
    return path


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that is in its place once the block ends well; otherwise nothing of it stays."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _refuse_doubles(rows: Sequence[JsonObject]) -> None:
    seen: dict[str, int] = {}
    for number, row in enumerate(rows, start=1):
        if "id" not in row:
            continue
        text = json.dumps(row["id"])
        if text in seen:
            raise InputError(f"rows {seen[text]} and {number} have the same id {text}; the published file is damaged")
        seen[text] = number

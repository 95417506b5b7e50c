"""Which files of a data set on the hub hold a split: told by their names.

Rules:
* `train.jsonl` is the split `train`; else its numbered parts are, `train-00000-of-00002.jsonl` and so on, all of them;
  else what lies in a folder `train`. The first of these that is there counts.
* Nothing is guessed: where the names do not tell, the files are listed.
"""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

from rollbook.errors import HubError

_ROWS: Final = ".jsonl"
_LISTED: Final = 10


def files_of_split(names: Iterable[str], split: str, of: str) -> list[str]:
    """Return the files that hold `split`, in order; `of` names the data set.

    Raises:
        HubError: no file or several ways to read the names, or parts that are missing; lists the files.

    """
    every = sorted(names)
    rows = [name for name in every if name.endswith(_ROWS)]
    whole = [name for name in rows if PurePosixPath(name).stem == split]
    if len(whole) == 1:
        return whole
    parts = _numbered(rows, split, of)
    within = [name for name in rows if split in PurePosixPath(name).parts[:-1]]
    if not whole and (parts or within):
        return parts or within
    listed = f"{', '.join(every[:_LISTED])}{', …' if len(every) > _LISTED else ''}" or "nothing"
    what = f"holds `{split}` in several files" if whole else f"has no split `{split}` in JSONL"
    raise HubError(f"{of} {what}; name a file with --artifact. It has: {listed}")


def _numbered(rows: list[str], split: str, of: str) -> list[str]:
    """Return the numbered parts of a split, in order."""
    pattern = re.compile(rf"{re.escape(split)}-(\d+)-of-(\d+)")
    found = {name: match for name in rows if (match := pattern.fullmatch(PurePosixPath(name).stem))}
    if not found:
        return []
    numbers = sorted(int(match[1]) for match in found.values())
    counts = {int(match[2]) for match in found.values()}
    if len(counts) != 1 or len(numbers) != counts.pop() or len(set(numbers)) != len(numbers):
        raise HubError(f"{of}: parts of `{split}` are missing or there twice: {', '.join(sorted(found))}")
    return sorted(found, key=lambda name: int(found[name][1]))

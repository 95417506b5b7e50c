"""GSM8K's test questions: from the published file to rows with a number as the answer.

Rules:
* The answer is what stands after the last `####`, without the commas between thousands.
* The worked solution is left out of the row.

Source: Cobbe et al. 2021, "Training Verifiers to Solve Math Word Problems".
"""

import os
import re
from pathlib import Path
from typing import Final

from rollbook import CACHE_DIR, PublishedFile, PublishedRow, prepared_rows, published_json_rows, write_prepared_rows

PUBLISHED: Final = PublishedFile(
    "gsm8k",
    "https://raw.githubusercontent.com/openai/grade-school-math/master/grade_school_math/data/test.jsonl",
    8 << 20,
)
ROWS: Final = 1319
_MARK: Final = "####"
_NUMBER: Final = re.compile(r"-?\d+(?:\.\d+)?")


def prepare(
    jsonl_fpath: str | os.PathLike[str] = CACHE_DIR / "benchmarks" / "gsm8k" / "gsm8k.jsonl",
    source: str | None = None,
    expected_rows: int | None = ROWS,
) -> Path:
    """Write the data set and return its path; `source` is the published file, or a folder that holds it.

    Raises:
        InputError: the file is not to be had, or is not what was published.

    """
    found = PUBLISHED.found(source, jsonl_fpath)
    rows = prepared_rows(published_json_rows(found), row_of)
    return write_prepared_rows(jsonl_fpath, [{"id": at, **row} for at, row in enumerate(rows)], expected_rows)


def row_of(published: PublishedRow) -> dict[str, object]:
    """Return the row of a published one.

    Raises:
        InputError: it is none.

    """
    _, mark, last = published.text("answer").rpartition(_MARK)
    answer = last.strip().replace(",", "")
    if not mark or not _NUMBER.fullmatch(answer):
        raise published.fault(f"`answer` does not end with `{_MARK}` and a number: {last.strip()[-40:]!r}")
    return {"question": published.text("question").strip(), "expected_answer": answer}

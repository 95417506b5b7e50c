"""HumanEval's problems: from the published file to functions with their tests.

Rules:
* A response's program stands behind the published prompt and before the published tests, as the authors run it; so an
  answer that leaves out the prompt's imports and other functions finds them.
* A row's `expected_answer` is the canonical solution as a response would give it; no model is sent it.

Source: Chen et al. 2021, "Evaluating Large Language Models Trained on Code".
"""

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from rollbook import (
    CACHE_DIR,
    PublishedFile,
    PublishedRow,
    prepared_rows,
    published_json_rows,
    unpacked_file,
    write_prepared_rows,
)

PUBLISHED: Final = PublishedFile(
    "humaneval",
    "https://raw.githubusercontent.com/openai/human-eval/master/data/HumanEval.jsonl.gz",
    4 << 20,
    ("HumanEval.jsonl",),
)
ROWS: Final = 164
_CHECKED: Final = "checked_by_its_tests"
_AFTER: Final = """

{test}


def {checked}(_):
    check({entry_point})
    return True
"""


def prepare(
    jsonl_fpath: str | os.PathLike[str] = CACHE_DIR / "benchmarks" / "humaneval" / "humaneval.jsonl",
    source: str | None = None,
    expected_rows: int | None = ROWS,
) -> Path:
    """Write the data set and return its path; `source` is the published file, packed or not, or a folder that holds it.

    Raises:
        InputError: the file is not to be had, or is not what was published.

    """
    found = PUBLISHED.found(source, jsonl_fpath)
    with TemporaryDirectory(prefix="humaneval-") as scratch:
        plain = unpacked_file(found, Path(scratch), 16 * PUBLISHED.most_bytes)
        return write_prepared_rows(jsonl_fpath, prepared_rows(published_json_rows(plain), row_of), expected_rows)


def row_of(published: PublishedRow) -> dict[str, object]:
    """Return the row of a published one.

    Raises:
        InputError: it is none.

    """
    prompt, name = published.text("prompt"), published.text("entry_point")
    test = published.text("test")
    if not name.isidentifier() or f"def {name}(" not in prompt:
        raise published.fault(f"`prompt` defines no function of the name in `entry_point`, {name!r}")
    if "def check(" not in test:
        raise published.fault("`test` defines no function `check`")
    before = prompt if prompt.endswith("\n") else prompt + "\n"
    tests = {
        "inputs": ["null"],
        "outputs": ["true"],
        "fn_name": _CHECKED,
        "before": before,
        "after": _AFTER.format(test=test.strip("\n"), checked=_CHECKED, entry_point=name),
    }
    return {
        "id": published.text("task_id"),
        "prompt": prompt.strip("\n"),
        "expected_answer": f"```python\n{before}{published.text('canonical_solution').rstrip()}\n```",
        "verifier_metadata": {"unit_tests": tests},
    }

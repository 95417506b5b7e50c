"""IFEval's requests: from the published file to rows with instructions that rules can check.

Rules:
* An instruction's arguments that hold nothing are left out: one published form of the file has all names in every row.
* An instruction that no rule checks is an error, and no row.

Source: Zhou et al. 2023, "Instruction-Following Evaluation for Large Language Models".
"""

import os
from pathlib import Path
from typing import Final

from resources_servers.instruction_following.app import CHECKS
from rollbook import CACHE_DIR, PublishedFile, PublishedRow, prepared_rows, published_json_rows, write_prepared_rows

PUBLISHED: Final = PublishedFile(
    "ifeval",
    "https://raw.githubusercontent.com/google-research/google-research/master/instruction_following_eval/data/input_data.jsonl",
    8 << 20,
    ("ifeval_input_data.jsonl",),
)
ROWS: Final = 541


def prepare(
    jsonl_fpath: str | os.PathLike[str] = CACHE_DIR / "benchmarks" / "ifeval" / "ifeval.jsonl",
    source: str | None = None,
    expected_rows: int | None = ROWS,
) -> Path:
    """Write the data set and return its path; `source` is the published file, or a folder that holds it.

    Raises:
        InputError: the file is not to be had, or is not what was published.

    """
    found = PUBLISHED.found(source, jsonl_fpath)
    return write_prepared_rows(jsonl_fpath, prepared_rows(published_json_rows(found), row_of), expected_rows)


def row_of(published: PublishedRow) -> dict[str, object]:
    """Return the row of a published one.

    Raises:
        InputError: it is none.

    """
    names, prompt = published.texts("instruction_id_list"), published.text("prompt")
    given = [{name: value for name, value in one.items() if value is not None} for one in published.objects("kwargs")]
    if not names or len(names) != len(given):
        raise published.fault(f"{len(names)} instructions with arguments for {len(given)}; each has its own")
    unknown = [name for name in names if name not in CHECKS]
    if unknown:
        raise published.fault(f"no rule checks the instruction {unknown[0]!r}")
    return {
        "id": published.number("key"),
        "responses_create_params": {"input": [{"role": "user", "content": prompt}]},
        "verifier_metadata": {
            "instruction_id_list": names,
            "kwargs": given,
            "prompt": prompt,
            "grading_mode": "binary",
        },
    }

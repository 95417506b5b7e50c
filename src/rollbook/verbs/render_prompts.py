"""Rows and a prompt template → the same rows with the prompt filled in.

Rules:
* The file appears whole, or not at all; rows stream.
* Each row names the template that it was made with.

Source: servers.md §8.7.
"""

from pathlib import Path
from typing import Final

from rollbook.config.roots import require_read_path
from rollbook.errors import InputError
from rollbook.inputs.jsonl import read_source_rows
from rollbook.inputs.prompts import fill_prompts, load_prompt_config
from rollbook.ledger.whole_file import whole_file
from rollbook.records.codec import encode
from rollbook.verbs.output_file import output_file

PROMPT_USED_KEY: Final = "prompt_config_used"


def render_prompts(rows: str | Path, prompt: str | Path, output: Path, *, overwrite: bool = False) -> int:
    """Write `rows` with the template filled in, and return how many there are; `overwrite` replaces an earlier file.

    Raises:
        ConfigPathNotFoundError: no root holds the rows or the template.
        InputError: lines that are no rows, rows with a prompt of their own, a field that a row lacks, or an output that
            is what is read, or is there and no file.
        OutputExistsError: the output is there already.

    """
    source, template = require_read_path(rows, "file of rows"), require_read_path(prompt, "prompt template")
    if output.resolve() in {source.resolve(), template.resolve()}:
        raise InputError(f"{output} is read; write to another file")
    place = output_file(output, replaces=overwrite)
    used, count = {PROMPT_USED_KEY: str(template.resolve())}, 0
    with whole_file(place) as file:
        for filled in fill_prompts(load_prompt_config(template), read_source_rows(source)):
            file.write(encode(filled.row | used) + b"\n")
            count += 1
    return count

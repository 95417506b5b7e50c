"""The rows that an environment declares, held to what can be sent and to what its server says of its tasks.

Rules:
* Example rows have to be there; rows that a script or a download brings are checked where they are.
* A row is told by file and line.

Source: servers.md §8.2, §8.12.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from omegaconf import DictConfig

from rollbook.config.declared_datasets import DeclaredDataset, declared_datasets
from rollbook.config.roots import resolve_read_path
from rollbook.errors import RollbookError
from rollbook.inputs.jsonl import read_source_rows
from rollbook.inputs.prompts import fill_prompts, load_prompt_config
from rollbook.records.source import SourceRow
from rollbook.verbs.collate_dataset import DatasetRows
from rollbook.verbs.validation import Check, Finding, findings_in, several

_NAME: Final = "rows"
_ROW: Final = re.compile(r"row (\d+): (.*)")
_OF_A_SUMMARY: Final = re.compile(r"(conflicting|misplaced): (.*)")
_COMMANDS: Final = {
    "benchmark": "gym eval prepare --benchmark {name}",
    "train": "gym dataset collate --download",
    "validation": "gym dataset collate --download",
}


def rows_checked(cfg: DictConfig, owner: str | None, name: str) -> Check:
    """Check the rows of every data set that `owner` declares; `name` is the environment's."""
    declared = [one for one in declared_datasets(cfg) if one.instance == owner]
    if not declared:
        return Check(_NAME, unchecked="the configuration declares no data set")
    found: list[Finding] = []
    seen, absent = [], []
    for one in declared:
        path = _path(one)
        if not path.is_file():
            how = _COMMANDS.get(one.entry.type)
            if how is None:
                found.append(Finding(str(path), f"the {one.entry.type} rows are not there; write them"))
            else:
                absent.append(f"{path} is not there yet; {how.format(name=name)} brings it")
            continue
        count, wrong = _checked(cfg, one, path)
        seen.append(f"{count} of {path}")
        found += wrong
    return Check(_NAME, several(found), ", ".join(seen), "; ".join(absent))


def rows_to_ask(cfg: DictConfig, owner: str | None) -> Iterator[SourceRow]:
    """Yield the rows of `owner`'s data sets that are there, with their prompts, up to the first that cannot be read."""
    for one in declared_datasets(cfg):
        if one.instance != owner or not _path(one).is_file():
            continue
        rows, prompt = read_source_rows(_path(one)), one.entry.prompt_config
        try:
            yield from rows if prompt is None else fill_prompts(load_prompt_config(prompt), rows)
        except RollbookError:
            return


def _path(declared: DeclaredDataset) -> Path:
    return resolve_read_path(declared.entry.jsonl_fpath, Path.is_file)


def _checked(cfg: DictConfig, declared: DeclaredDataset, path: Path) -> tuple[int, list[Finding]]:
    count = 0
    try:
        checked = DatasetRows(cfg, declared, path, "error")
        for _ in checked.rows(0, None):
            count += 1
    except RollbookError as error:
        return count, [finding for part in str(error).split("; ") for finding in findings_in(part, str(path))]
    return count, [finding for problem in checked.problems for finding in _told(problem, str(path))]


def _told(problem: str, path: str) -> Iterator[Finding]:
    """Yield what a problem says, with its line; what a summary only counts is left out."""
    if not problem.startswith(f"{path} ("):
        yield from findings_in(problem, path)
        return
    for line in problem.splitlines()[1:]:
        row, counted = _ROW.fullmatch(line), _OF_A_SUMMARY.fullmatch(line)
        if row:
            yield Finding(f"{path}:{row[1]}", f"{row[2]}; see task_data.py beside the server's app.py")
        elif counted and counted[1] == "conflicting":
            yield Finding(path, f"a row gives a field two values: {counted[2]}; keep one")
        elif counted:
            yield Finding(path, f"fields that are read in `verifier_metadata` stand beside it: {counted[2]}; move them")

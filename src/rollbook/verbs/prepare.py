"""Preparation: dataset files → the plan on disk, checked whole before anything is sent.

Rules:
* Rows stream from the dataset to the plan; a row at fault stops the command and leaves the disk as it was.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from rollbook.inputs.checks import RowChecks
from rollbook.inputs.prompts import PromptConfig, fill_prompts
from rollbook.ledger.run import Run
from rollbook.plan.expand import Expansion
from rollbook.plan.options import PlanOptions
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME
from rollbook.records.json_values import JsonObject
from rollbook.records.source import SourceRow

Resolve = Callable[[JsonObject], JsonObject]
"""A planned row → the same row with its agent named. Raises ConfigError for rows that name nobody who exists."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """How much a plan owes, and what a person should know about it."""

    tasks: int
    rollouts: int
    notes: tuple[str, ...]


def planned_rows(
    sources: Iterable[SourceRow],
    expansion: Expansion,
    *,
    resolve: Resolve,
    prompt: PromptConfig | None = None,
    interleave: bool = False,
) -> Iterator[JsonObject]:
    """Yield the materialized rows of `sources`, in plan order."""
    checked = RowChecks(prompt_is_filled_in=prompt is not None).watch(sources)
    filled = fill_prompts(prompt, checked) if prompt is not None else checked
    rows = (resolve(row) for row in expansion.rows(filled))
    return iter(sorted(rows, key=_rollout_index)) if interleave else rows


def prepare(
    sources: Iterable[SourceRow],
    run: Run,
    options: PlanOptions,
    *,
    resolve: Resolve,
    prompt: PromptConfig | None = None,
    interleave: bool = False,
) -> Prepared:
    """Write the plan of a fresh run and return how much it owes. A plan that owes nothing writes nothing."""
    expansion = Expansion(options)
    rows = planned_rows(sources, expansion, resolve=resolve, prompt=prompt, interleave=interleave)
    first = next(rows, None)
    if first is None:
        return Prepared(0, 0, tuple(expansion.notes))
    written = run.plan_afresh(chain([first], rows))
    return Prepared(expansion.tasks, written, tuple(expansion.notes))


def _rollout_index(row: JsonObject) -> int:
    index = row[ROLLOUT_INDEX_KEY_NAME]
    return index if isinstance(index, int) else 0

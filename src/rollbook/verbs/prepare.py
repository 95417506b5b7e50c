"""Preparation: source rows → the rows of a plan, checked whole before anything is sent.

Rules:
* Rows stream from the dataset to the plan; a row at fault raises, at the latest after the last row.
* Interleaved rows wait on disk, so that memory does not follow the dataset.
"""

from collections.abc import Callable, Iterable, Iterator

from rollbook.inputs.checks import RowChecks
from rollbook.inputs.prompts import PromptConfig, fill_prompts
from rollbook.ledger.interleave import interleaved
from rollbook.plan.expand import Expansion
from rollbook.records.json_values import JsonObject
from rollbook.records.source import SourceRow

Resolve = Callable[[Iterable[JsonObject]], Iterable[JsonObject]]
"""Planned rows → the same rows with their agents named. Raises ConfigError for names that lead nowhere."""


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
    rows = resolve(expansion.rows(filled))
    return interleaved(rows) if interleave else iter(rows)

"""What an aggregation came to, as text.

Rules:
* Every group's headline with what qualifies it; what is missing of all of them; key metrics; files.
* An entry that was computed without its server says so.

Source: collection.md §6.2, §6.6.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from rollbook.records.coverage import Coverage
from rollbook.records.headline import Headline
from rollbook.records.json_values import JsonObject
from rollbook.report.words import headline_in_words, number, shown

_KEYS_SHOWN: Final = 12


def aggregate_text(
    shards: int,
    coverage: Coverage,
    headlines: Iterable[tuple[str, Headline]],
    metrics: Sequence[JsonObject],
    files: Mapping[str, Path],
) -> str:
    """Return the report."""
    lines = [f"{shards} {'run' if shards == 1 else 'runs'}, {_counted(coverage)}"]
    lines += [line for name, headline in headlines for line in headline_in_words(name, headline)]
    lines += [line for entry in metrics for line in _key_metrics(entry)]
    lines += [f"{name}: {shown(path)}" for name, path in files.items()]
    return "\n".join(lines)


def _counted(coverage: Coverage) -> str:
    parts = [
        (coverage.scored, "scored"),
        (coverage.masked, "masked"),
        (coverage.unscored, "unscored"),
        (coverage.failed, "failed"),
        (coverage.missing, "missing"),
    ]
    told = ", ".join(f"{count} {word}" for count, word in parts if count)
    beyond = f", and {coverage.unplanned} beyond the plan, in no number" if coverage.unplanned else ""
    return f"{coverage.planned} rollouts: {told or 'none'}{beyond}"


def _key_metrics(entry: JsonObject) -> list[str]:
    agent, keys = entry.get("agent_ref"), entry.get("key_metrics")
    if not isinstance(keys, Mapping) or not isinstance(agent, Mapping):
        return []
    here = ", computed without its server" if entry.get("computed_locally") else ""
    told = [f"{shown(name)} {_value(value)}" for name, value in list(keys.items())[:_KEYS_SHOWN]]
    rest = f", and {len(keys) - _KEYS_SHOWN} more" if len(keys) > _KEYS_SHOWN else ""
    return [f"Key metrics of {shown(agent.get('name'))}{here}: {', '.join(told)}{rest}"]


def _value(value: object) -> str:
    return number(value) if isinstance(value, float) else shown(value)

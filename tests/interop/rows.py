"""Rows of three environments that both sides have, and what is read back of a run's folder."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import rollbook

SHELF = Path(rollbook.__file__).parent / "components" / "resources_servers"
ENVIRONMENTS = ("mcqa", "example_single_tool_call", "math_with_judge")
AGENTS = tuple(f"{name}_simple_agent" for name in ENVIRONMENTS)
CHOSEN = "math_with_judge_simple_agent"
Key = tuple[int, int]


def example_rows() -> list[dict]:
    """Return the example rows of every environment, each for its own agent."""
    return [
        row | {"agent_ref": {"name": agent}}
        for name, agent in zip(ENVIRONMENTS, AGENTS, strict=True)
        for row in json_lines(SHELF / name / "data" / "example.jsonl")
    ]


def json_lines(path: Path) -> list[dict]:
    """Return the whole lines of a file; an unfinished last line is none."""
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("\n") and line.strip()]


def companion(output: Path, ending: str) -> Path:
    """Return a file beside a run's output."""
    return output.with_name(output.stem + ending)


def key_of(row: dict) -> Key:
    """Return which rollout a row is of."""
    return row["_ng_task_index"], row["_ng_rollout_index"]


def keys(path: Path) -> Counter[Key]:
    """Count the lines of each rollout."""
    return Counter(map(key_of, json_lines(path)))


def rewards(output: Path) -> dict[Key, float]:
    """Return every rollout's reward; a rollout that is there twice is an error."""
    rows = json_lines(output)
    told = {key_of(row): row["reward"] for row in rows}
    assert len(told) == len(rows), f"{output} has a rollout twice"
    return told


def plan_keys(output: Path) -> Counter[Key]:
    """Count the lines of the plan beside an output."""
    return keys(companion(output, "_materialized_inputs.jsonl"))


def metrics(output: Path) -> dict[str, dict]:
    """Return what was aggregated, by agent."""
    entries = json.loads(companion(output, "_aggregate_metrics.json").read_text())
    return {entry["agent_ref"]["name"]: entry for entry in entries}


def write_rows(path: Path, rows: list[dict]) -> Path:
    """Write rows as JSON Lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def unlike_metrics(one: Path, other: Path) -> list[str]:
    """Name every metric in which what was aggregated beside two outputs differs.

    What an environment chooses itself is compared where both choose it: its key metrics, and the scores it has besides
    the reward (`CHOSEN`). The sample row of a task is left out: the field's collector writes a placeholder.
    """
    here, there = metrics(one), metrics(other)
    assert here.keys() == there.keys() == set(AGENTS)
    return [told for agent in AGENTS for told in _unlike_entries(here[agent], there[agent])]


def _unlike_entries(one: dict, other: dict) -> Iterator[str]:
    name = one["agent_ref"]["name"]
    for part in ("agent_metrics", "key_metrics", "group_level_metrics", "repeat_level_metrics"):
        free = part == "key_metrics" or (part == "agent_metrics" and name == CHOSEN)
        here, there = _shared(one[part], other[part]) if free else (one[part], other[part])
        yield from _unlike(here, there, f"{name}.{part}")


def _shared(one: dict, other: dict) -> tuple[dict, dict]:
    both = one.keys() & other.keys()
    assert any(key.startswith("mean/") for key in both)
    return tuple({key: side[key] for key in both if key != "per_sample_aggregate"} for side in (one, other))


def _unlike(one: object, other: object, where: str) -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        yield from (f"{where}.{key}: one side alone" for key in sorted(one.keys() ^ other.keys()) if key != "sample")
        for key in one.keys() & other.keys() - {"sample"}:
            yield from _unlike(one[key], other[key], f"{where}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for at, pair in enumerate(zip(one, other, strict=True)):
            yield from _unlike(*pair, f"{where}[{at}]")
    elif not _alike(one, other):
        yield f"{where}: {one!r}, {other!r}"[:300]


def _alike(one: object, other: object) -> bool:
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return one == other

"""One run's aggregate metrics as a comparison reads them: by agent, with a value for every repeat.

Rules:
* What the file says is taken as it stands; only what older files do not say is worked out, from their rollouts.
* An entry that says that its aggregation failed has no metrics, and that is told.

Source: collection.md §1.10, §9.2.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from rollbook.errors import ConfigError
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.records.json_values import JsonMapping, JsonObject, json_type
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY
from rollbook.scoring.across_repeats import across_repeats
from rollbook.scoring.repeats import repeat_entries, rows_by_repeat
from rollbook.scoring.rows import PlacedRow, number_in

_REWARD = "reward"
_NOT_NUMBERS = frozenset({"rollout_id", TASK_INDEX_KEY_NAME, ROLLOUT_INDEX_KEY_NAME})


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """One agent's metrics: overall, the key ones, by task and by repeat."""

    agent: str
    agent_metrics: JsonMapping
    key_metrics: JsonMapping
    tasks: Sequence[JsonMapping]
    repeats: Sequence[JsonMapping]

    def value(self, name: str) -> float | None:
        """Return a metric: its mean across repeats where that is recorded, else the value itself."""
        across = number_in(self.agent_metrics.get(f"mean_across_repeats/{name}"))
        own = number_in(self.agent_metrics.get(name, self.key_metrics.get(name)))
        return own if across is None else across

    def coverage(self) -> float | None:
        """Return the smallest share of rollouts that the file gives for what it covers, None where it gives none."""
        told = (
            self._in_the_mean(),
            _rewarded(self.tasks),
            self._share("coverage/measured_rollouts", "coverage/measured_rollouts", "coverage/masked_rollouts"),
            _sums(self.tasks, "num_rollouts", "expected_num_rollouts"),
            _sums(self.repeats, "sample_count", "sample_count", "missing_count"),
        )
        return min((share for share in told if share is not None), default=None)

    def _in_the_mean(self) -> float | None:
        """Return the share of the plan that is scored, or counts as zero by choice."""
        scored, expected, imputed = (
            number_in(self.agent_metrics.get(f"coverage/{name}")) for name in ("scored", "expected", "imputed")
        )
        return (scored + (imputed or 0.0)) / expected if scored is not None and expected else None

    def _share(self, part: str, *whole: str) -> float | None:
        return _sums([self.agent_metrics], part, *whole)


@dataclass(frozen=True, slots=True)
class MetricSide:
    """One run's entries by agent, and what had to be said while they were read."""

    label: str
    entries: Mapping[str, MetricEntry]
    warnings: tuple[str, ...] = ()


def metric_side(label: str, document: object) -> MetricSide:
    """Return the entries of an aggregate metrics file.

    Raises:
        ConfigError: it is no list of entries, each with the name of an agent or a server.

    """
    if not isinstance(document, list):
        raise ConfigError(f"{label}: holds {json_type(document)}, not a list of one entry per server")
    entries: dict[str, MetricEntry] = {}
    warnings: list[str] = []
    for number, entry in enumerate(document):
        name = _name(entry) if isinstance(entry, Mapping) else None
        if name is None or name in entries:
            told = f"a second entry of {name}" if name else "names neither an agent nor a server"
            raise ConfigError(f"{label}: entry {number}: {told}; write the file anew with `gym eval aggregate`")
        if entry.get("aggregation_error"):
            warnings.append(f"{label}: {name}: its aggregation failed, so it has no metrics")
        entries[name] = _entry(name, entry)
    return MetricSide(label, entries, tuple(warnings))


def _sums(entries: Sequence[JsonMapping], part: str, *whole: str) -> float | None:
    """Return the sum of `part` as a share of the sum of all of `whole`; None where an entry lacks one of them."""
    parts = [number_in(entry.get(part)) for entry in entries]
    wholes = [number_in(entry.get(name)) for entry in entries for name in whole]
    had = [number for number in parts if number is not None]
    expected = [number for number in wholes if number is not None]
    if len(had) < len(parts) or len(expected) < len(wholes) or not sum(expected):
        return None
    return sum(had) / sum(expected)


def _rewarded(tasks: Sequence[JsonMapping]) -> float | None:
    """Return the share of the rollouts of `tasks` that have a reward; None where none has, or none is listed."""
    infos = [info for task in tasks for info in _objects(task.get("rollout_infos"))]
    had = sum(number_in(info.get(_REWARD)) is not None for info in infos)
    return had / len(infos) if had else None


def _name(entry: JsonMapping) -> str | None:
    agent = entry.get(AGENT_REF_KEY)
    name = agent.get("name") if isinstance(agent, Mapping) else None
    found = name or entry.get(NG_ENVIRONMENT_SERVER_KEY)
    return found if isinstance(found, str) else None


def _entry(name: str, entry: JsonMapping) -> MetricEntry:
    tasks, repeats = _objects(entry.get("group_level_metrics")), _objects(entry.get("repeat_level_metrics"))
    own, key = _object(entry.get("agent_metrics")), _object(entry.get("key_metrics"))
    if not repeats:
        repeats = _repeats_of(tasks)
        own = across_repeats(repeats) | own
    return MetricEntry(name, own, key, tasks, repeats)


def _object(value: object) -> JsonObject:
    return dict(value) if isinstance(value, Mapping) else {}


def _objects(value: object) -> list[JsonObject]:
    return [dict(item) for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _repeats_of(tasks: Iterable[JsonMapping]) -> list[JsonObject]:
    """Return what older files leave out: one entry for each repeat, where there are several."""
    repeats = rows_by_repeat(sorted(_placed(tasks), key=lambda row: (row.task, row.rollout)))
    return repeat_entries(repeats) if len(repeats) > 1 else []


def _placed(tasks: Iterable[JsonMapping]) -> Iterator[PlacedRow]:
    for task in tasks:
        for info in _objects(task.get("rollout_infos")):
            key = indices_of(info)
            if key is not None:
                numbers = {name: number_in(value) for name, value in info.items() if name not in _NOT_NUMBERS}
                known = {name: number for name, number in numbers.items() if number is not None}
                yield PlacedRow(*key, {}, known, masked=False)


def indices_of(info: JsonMapping) -> tuple[int, int] | None:
    """Return (task, rollout) of an entry of `rollout_infos`; older ones say it in `rollout_id` alone."""
    task, rollout = info.get(TASK_INDEX_KEY_NAME), info.get(ROLLOUT_INDEX_KEY_NAME)
    if isinstance(task, int) and isinstance(rollout, int):
        return task, rollout
    first, _, second = str(info.get("rollout_id")).partition(":")
    return (int(first), int(second)) if first.isdecimal() and second.isdecimal() else None

"""A run's files → its side of a comparison: where every rollout stands, and what its tasks say.

Rules:
* Rows pass by one at a time; of each rollout a few numbers are kept, of each task three digests.
* What tasks say is read from the plan; where there is none, from what results echo of it.
* What counts as zero is what `scoring` says, where nothing was chosen to count: what a producer marked.
* A line that cannot be read was told when the run was folded, and is passed over here.

Source: collection.md §1.5, §9.2.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from rollbook.compare.policy import REWARD
from rollbook.compare.side import NOWHERE, SCORED, UNSCORED, At, Said, Side, short, state_of
from rollbook.ledger.contradictions import told_of_doubles
from rollbook.ledger.history import History, planned_lines
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import scan_whole
from rollbook.records.columns import PLANNED, unpacked_key
from rollbook.records.identity import TASK_INDEX_KEY_NAME
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import NG_TASK_ID_KEY, RESPONSES_CREATE_PARAMS_KEY
from rollbook.records.nesting import not_too_deep
from rollbook.records.outcome import Failed, Scored
from rollbook.records.place import File
from rollbook.records.reading import UNREADABLE
from rollbook.records.record import Record
from rollbook.records.standing import Standings
from rollbook.records.table import FILE_NUMBERS, NO_ROW
from rollbook.records.task_content import own_name, prompt_digest, task_digests
from rollbook.scoring.imputation import NOTHING_COUNTED, zeros
from rollbook.verbs.compare_field import FieldValues
from rollbook.verbs.status import Reading, read_run

Tags = Sequence[Mapping[str, object]]
"""For each selection of tasks the fields that its tasks have, and their values; a list of values means any of them."""
_DAMAGE_NAMED: Final = 3
_RESULTS: Final = FILE_NUMBERS[File.RESULTS]
_ROW: Final = msgspec.json.Decoder(dict[str, object])


class _Head(msgspec.Struct):
    task: int = msgspec.field(name=TASK_INDEX_KEY_NAME)


class _Echo(msgspec.Struct):
    """What a result says of its task."""

    task: int = msgspec.field(name=TASK_INDEX_KEY_NAME)
    params: Any = msgspec.field(name=RESPONSES_CREATE_PARAMS_KEY, default=None)
    task_id: Any = None
    problem_id: Any = None
    instance_id: Any = None
    own_id: Any = msgspec.field(name=NG_TASK_ID_KEY, default=None)

    def row(self) -> JsonObject:
        names = {"task_id": self.task_id, "problem_id": self.problem_id, "instance_id": self.instance_id}
        return {RESPONSES_CREATE_PARAMS_KEY: self.params, NG_TASK_ID_KEY: self.own_id, **names}


_HEAD: Final = msgspec.json.Decoder(_Head)
_ECHO: Final = msgspec.json.Decoder(_Echo)


def side_of(output: Path, tags: Tags = (), field: str = REWARD) -> Side:
    """Return the side of the run at `output`; of each of its tasks it is noted which of `tags` it has.

    Where `field` is not the reward, its numbers stand in the place of rewards, and who has none is unscored.

    Raises:
        NoRunError: no run is there.
        OSError: a file cannot be read.

    """
    reading = read_run(output)
    side = Side(str(output), has_plan=reading.history.plan.rollouts > 0)
    side.notes += _notes(reading)
    side.is_damaged = bool(reading.faults)
    with ExitStack() as holding:
        _fill(side, reading, None if field == REWARD else FieldValues(reading.paths.output, field, holding))
    paths, history = reading.paths, reading.history
    _hear_plan(side, paths, history, tags)
    if any(not side.is_known(task) for task in side.task):
        _hear_results(side, paths)
    return side


def _notes(reading: Reading) -> Iterator[str]:
    if not reading.history.plan.rollouts:
        yield "there is no plan: rollouts that left no record are only known where other tasks have more of them"
    if reading.is_alive:
        yield "the run goes on: what is in flight counts as missing"
    for damage in reading.faults[:_DAMAGE_NAMED]:
        yield f"damaged: {damage.place}: {damage.what}"
    if len(reading.faults) > _DAMAGE_NAMED:
        yield f"and {len(reading.faults) - _DAMAGE_NAMED} more damaged places; `gym eval status` names them"
    yield from told_of_doubles(reading.paths, reading.history.standings)


def _fill(side: Side, reading: Reading, values: FieldValues | None) -> None:
    """Add every rollout that the plan holds (of a run without one, that a record names), task by task."""
    standings = reading.history.standings
    counted = zeros(standings, NOTHING_COUNTED, reading.rules) if values is None else iter(())
    flags, add = standings.columns.flags, _Adding(side, reading, counted, values)
    of_task: dict[str | None, list[tuple[int, int]]] = {}
    task = -1
    for number, seat in standings.in_order():
        if side.has_plan and not flags[seat] & PLANNED:
            continue
        if number >> 32 != task:
            add.task(task, of_task)
            task = number >> 32
        of_task.setdefault(_agent(standings, seat), []).append((number, seat))
    add.task(task, of_task)


@dataclass(slots=True)
class _Adding:
    """Rollouts put into a side."""

    side: Side
    reading: Reading
    zeros: Iterator[tuple[int, float]]
    """Key and reward of each rollout whose failure was marked to count as zero, in order."""
    values: FieldValues | None = None
    _next: tuple[int, float] | None = None

    def task(self, task: int, of_task: dict[str | None, list[tuple[int, int]]]) -> None:
        """Add a task's rollouts, those of each agent together; nothing of them is kept."""
        counted = dict(self._zeros_of(task))
        for agent, rollouts in of_task.items():
            for number, seat in rollouts:
                self._rollout(number, seat, counted.get(number))
            self.side.end_unit(task, agent)
        of_task.clear()

    def _zeros_of(self, task: int) -> Iterator[tuple[int, float]]:
        """Yield those of the zeros that are of `task`; tasks are asked for in rising order."""
        self._next = self._next or next(self.zeros, None)
        while self._next is not None and self._next[0] >> 32 <= task:
            yield self._next
            self._next = next(self.zeros, None)

    def _rollout(self, number: int, seat: int, zero: float | None) -> None:
        standings, key = self.reading.history.standings, unpacked_key(number)
        table, row = standings.table, standings.columns.row[seat]
        if standings.is_plainly_scored(seat):
            at = (table.files[row] == _RESULTS, table.offsets[row], table.lengths[row], table.lines[row])
            self._scored(key.rollout, table.rewards[row], at)
            return
        standing = standings.standing(key, self.reading.rules)
        outcome = standing.record.outcome if standing.record else None
        state = state_of(standing.disposition, outcome)
        if state == SCORED and isinstance(outcome, Scored):
            self._scored(key.rollout, outcome.reward, _at(standing.record))
        elif zero is not None and isinstance(outcome, Failed):
            self.side.add_counted(key.rollout, outcome.failure_class, zero)
        else:
            self.side.add_unscored(key.rollout, state)

    def _scored(self, repeat: int, reward: float, at: At) -> None:
        number = reward if self.values is None else self.values.at(at)
        if number is None:
            self.side.add_unscored(repeat, UNSCORED)
        else:
            self.side.add_scored(repeat, number, at)


def _at(record: Record | None) -> At:
    place = record.place if record else None
    return NOWHERE if place is None else (place.file is File.RESULTS, place.offset, place.length, place.line)


def _agent(standings: Standings, seat: int) -> str | None:
    """Return whose a rollout is: its plan's agent's, or where it is in no plan, its record's."""
    columns, table = standings.columns, standings.table
    if columns.flags[seat] & PLANNED:
        return columns.names[columns.group[seat]][0]
    row = columns.row[seat]
    return None if row == NO_ROW else table.sources[table.origins[row]][1]


def _hear_plan(side: Side, paths: RunPaths, history: History, tags: Tags) -> None:
    last = -1
    for line in planned_lines(paths, history.manifest):
        try:
            task = _HEAD.decode(line.text).task
            if task == last or side.is_known(task):
                continue
            side.say(task, _said(_ROW.decode(not_too_deep(line.text)), tags))
            last = task
        except UNREADABLE:
            continue


def _hear_results(side: Side, paths: RunPaths) -> None:
    """Take from results what they echo of the tasks of which nothing is known."""
    for line in scan_whole(paths.output):
        try:
            task = _HEAD.decode(line.text).task
            if side.is_known(task):
                continue
            row = _ECHO.decode(not_too_deep(line.text)).row()
            side.say(task, Said(0, short(prompt_digest(row)), _name(row)))
        except UNREADABLE:
            continue


def _said(row: JsonMapping, tags: Tags) -> Said:
    bits = sum(1 << number for number, wanted in enumerate(tags) if _has(row, wanted))
    content, prompt = task_digests(row)
    return Said(short(content), short(prompt), _name(row), bits)


def _name(row: JsonMapping) -> int:
    name = own_name(row)
    return short(hashlib.sha256(name.encode(errors="surrogatepass")).digest()) if name is not None else 0


def _has(row: JsonMapping, wanted: Mapping[str, object]) -> bool:
    """Whether a task has every one of the wanted values, at the top of its row or in what its task says."""
    places = list(places_of_tags(row))
    return all(any(_is_one_of(place[key], value) for place in places if key in place) for key, value in wanted.items())


def places_of_tags(row: JsonMapping) -> Iterator[JsonMapping]:
    """Yield the mappings of a row in which tags are looked for."""
    yield from (place for place in _places(row) if isinstance(place, Mapping))


def _places(row: JsonMapping) -> Iterator[object]:
    yield row
    inner = row.get("task_input")
    yield inner
    for place in (row, inner):
        if isinstance(place, Mapping):
            yield from (place.get("task_data"), place.get("metadata"), place.get("verifier_metadata"))


def _is_one_of(found: object, wanted: object) -> bool:
    options = wanted if isinstance(wanted, list) else [wanted]
    has = found if isinstance(found, list) else [found]
    return any(type(option) is type(value) and option == value for option in options for value in has)

"""Saved answers that are judged again: the results that stand, or what a judge failed on.

Rules:
* Of results, the fold says which stand; of judge failures, the last one of a rollout is taken, whatever interrupted row
  follows it. An omitted row is never one.
* What is kept of an answer is where it lies: rows are read back one by one.
* An answer that cannot be judged is refused by file and line before anything is sent.

Source: collection.md §4.6, §9.1, §21.1 (3).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import msgspec

from rollbook.errors import InputError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import payload_at, scan_whole
from rollbook.records import keys
from rollbook.records.columns import packed_key, unpacked_key
from rollbook.records.failure_kinds import JUDGE_FAILED
from rollbook.records.identity import ROLLOUT_ID_KEY_NAME, ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME, RolloutKey
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.outcome import Result
from rollbook.records.place import File, Place
from rollbook.records.reading import UNREADABLE, named
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW

Kind = Literal["results", "judge_failures", "trajectories"]
JUDGE_INVALID: Final = "judge_invalid"
JUDGE_CLASSES: Final = frozenset({JUDGE_FAILED, JUDGE_INVALID})
_OBJECT: Final = b"{"


class Answers(Protocol):
    """What is judged: of each rollout its saved row, or None where it has no answer to be judged."""

    def holds(self, key: RolloutKey) -> bool:
        """Whether an answer of `key` is to be judged."""
        ...

    def of(self, key: RolloutKey) -> JsonObject:
        """Return the row that keeps the answer of `key`."""
        ...

    def who(self, key: RolloutKey) -> tuple[str | None, str | None]:
        """Return the agent and the environment server that the row of `key` names."""
        ...

    def links(self, key: RolloutKey) -> JsonMapping:
        """Return what the record of `key` says of where its answer came from."""
        ...

    def __iter__(self) -> Iterator[RolloutKey]:
        """Yield the rollouts whose answers are to be judged."""
        ...


class Seen(msgspec.Struct, gc=False):
    """What is looked at in a saved row to tell whether it is judged again."""

    task: int = msgspec.field(name=TASK_INDEX_KEY_NAME)
    rollout: int = msgspec.field(name=ROLLOUT_INDEX_KEY_NAME)
    failure_class: Any = msgspec.field(name=keys.NG_FAILURE_CLASS_KEY, default=None)
    legacy_class: Any = msgspec.field(name=keys.NG_FAILURE_LEGACY_CLASS_KEY, default=None)
    omitted: Any = msgspec.field(name=keys.NG_OMITTED_ROLLOUT_KEY, default=None)
    terminal: Any = msgspec.field(name=keys.NG_TERMINAL_KEY, default=None)
    result_type: Any = msgspec.field(name=keys.NG_RESULT_TYPE_KEY, default=None)
    server: Any = msgspec.field(name=keys.NG_ENVIRONMENT_SERVER_KEY, default=None)
    kind: Any = msgspec.field(name=keys.STATUS_FAILURE_KIND_KEY, default=None)
    rollout_id: Any = msgspec.field(name=ROLLOUT_ID_KEY_NAME, default=None)
    agent_ref: msgspec.Raw = msgspec.Raw()
    response: msgspec.Raw = msgspec.Raw()
    deliverables: Any = msgspec.field(name=keys.DELIVERABLES_KEY, default=None)
    stage_index: Any = None
    mask_sample: Any = None
    invalid_judge_response: Any = None
    invalid_judge_retryable: Any = None

    @property
    def key(self) -> RolloutKey:
        """The rollout."""
        return RolloutKey(self.task, self.rollout)

    @property
    def identity(self) -> str:
        """The id that the rollout's attempts share."""
        return self.rollout_id if isinstance(self.rollout_id, str) else str(self.key)

    @property
    def has_response(self) -> bool:
        """Whether there is a response that can be judged."""
        return bytes(self.response)[:1] == _OBJECT

    @property
    def is_of_judge(self) -> bool:
        """Whether a judge failed on this row, which says that a result exists."""
        return not self.omitted and bool(JUDGE_CLASSES & {self.failure_class, self.legacy_class})

    @property
    def is_invalid(self) -> bool:
        """Whether the row is a result whose judge answered what nobody could read."""
        return bool(self.invalid_judge_response) and self.invalid_judge_retryable is not False


_SEEN: Final = msgspec.json.Decoder(Seen)
_ROW: Final = msgspec.json.Decoder(dict[str, object])


def seen_in(paths: RunPaths, file: File) -> Iterator[tuple[Place, Seen]]:
    """Yield each committed row of a file of a run, and where it lies.

    Raises:
        InputError: a line that is no row of a rollout; names file and line.

    """
    path = paths.holding(file)
    for number, offset, length, text in scan_whole(path):
        try:
            yield Place(file, offset, length, number), _SEEN.decode(text)
        except UNREADABLE as error:
            raise InputError(
                f"{path}:{number}: not a rollout record: {error}; mend the line, or take it out"
            ) from error


def no_answer(path: Path, place: Place, seen: Seen) -> InputError:
    """Return what is said of a row that keeps no response."""
    return InputError(
        f"{path}:{place.line}: rollout {seen.key} has no `response` to judge "
        f"(_ng_result_type: {seen.result_type or 'not given'}); only results with a response can be judged again"
    )


@dataclass(frozen=True, slots=True)
class SavedResults:
    """The results of a run that stand."""

    paths: RunPaths
    standings: Standings

    def holds(self, key: RolloutKey) -> bool:
        """Whether a result of `key` stands."""
        return self._place(key) is not None

    def of(self, key: RolloutKey) -> JsonObject:
        """Return the result."""
        place = self._place(key)
        if place is None:
            raise InputError(f"{self.paths.output}: no result of rollout {key} stands any more")
        return row_at(self.paths, place)

    def who(self, key: RolloutKey) -> tuple[str | None, str | None]:
        """Return the agent and the environment server of the result."""
        record = self.standings.of(key)
        return (None, None) if record is None else (record.agent, record.server)

    def links(self, key: RolloutKey) -> JsonMapping:  # noqa: ARG002  results need none: their run keeps them
        """Return nothing."""
        return {}

    def __iter__(self) -> Iterator[RolloutKey]:
        """Yield the rollouts of which a result stands."""
        columns, table = self.standings.columns, self.standings.table
        for number, seat in columns.seats.items():
            row = columns.row[seat]
            if row != NO_ROW and isinstance(table.shape(row), Result):
                yield unpacked_key(number)

    def refuse_without_response(self, wanted: frozenset[RolloutKey] | None) -> None:
        """Refuse results that stand, are among the `wanted`, and keep no response.

        Raises:
            InputError: there is one; names file, line and what implements its environment.

        """
        for place, seen in seen_in(self.paths, File.RESULTS):
            if seen.has_response or (wanted is not None and seen.key not in wanted):
                continue
            stands = self._place(seen.key)
            if stands is not None and stands.line == place.line:
                raise no_answer(self.paths.output, place, seen)

    def _place(self, key: RolloutKey) -> Place | None:
        record = self.standings.of(key)
        if record is None or not isinstance(record.outcome, Result) or record.place is None:
            return None
        return record.place if record.place.file is File.RESULTS else None


@dataclass(slots=True)
class JudgeFailures:
    """What a judge failed on, of rollouts that have no result; `invalid` results are taken for failures."""

    paths: RunPaths
    places: dict[int, Place] = field(default_factory=dict)
    names: dict[int, tuple[str | None, str | None]] = field(default_factory=dict)

    @classmethod
    def found(cls, paths: RunPaths, *, with_invalid: bool) -> "JudgeFailures":
        """Look for them in the files of `paths`.

        Raises:
            InputError: rows of several stages, a row that keeps no response, or a line that is no row.

        """
        answers = cls(paths)
        done: set[int] = set()
        for place, seen in seen_in(paths, File.RESULTS):
            _refuse_stages(paths.output, place, seen)
            if with_invalid and seen.is_invalid:
                answers._take(place, seen)
            else:
                done.add(packed_key(seen.key))
                answers._drop(packed_key(seen.key))
        for place, seen in seen_in(paths, File.FAILURES):
            if not seen.omitted:
                _refuse_stages(paths.failures, place, seen)
            if seen.is_of_judge and packed_key(seen.key) not in done:
                answers._take(place, seen)
        return answers

    def holds(self, key: RolloutKey) -> bool:
        """Whether a judge failed on the answer of `key`."""
        return packed_key(key) in self.places

    def of(self, key: RolloutKey) -> JsonObject:
        """Return the row that keeps the answer."""
        return row_at(self.paths, self.places[packed_key(key)])

    def who(self, key: RolloutKey) -> tuple[str | None, str | None]:
        """Return the agent and the environment server of the row."""
        return self.names[packed_key(key)]

    def links(self, key: RolloutKey) -> JsonMapping:  # noqa: ARG002  the new run holds its own history
        """Return nothing."""
        return {}

    def __iter__(self) -> Iterator[RolloutKey]:
        """Yield the rollouts."""
        return map(unpacked_key, self.places)

    def _take(self, place: Place, seen: Seen) -> None:
        if not seen.has_response:
            raise no_answer(self.paths.holding(place.file), place, seen)
        self.places[packed_key(seen.key)] = place
        self.names[packed_key(seen.key)] = named(bytes(seen.agent_ref), seen.server)

    def _drop(self, number: int) -> None:
        self.places.pop(number, None)
        self.names.pop(number, None)


def refuse_several_stages(paths: RunPaths) -> None:
    """Refuse a run whose rows are of several stages.

    Raises:
        InputError: they are; names file and line.

    """
    for file in (File.RESULTS, File.FAILURES):
        for place, seen in seen_in(paths, file):
            if not seen.omitted:
                _refuse_stages(paths.holding(file), place, seen)


def _refuse_stages(path: Path, place: Place, seen: Seen) -> None:
    if seen.stage_index is not None:
        raise InputError(
            f"{path}:{place.line}: rollout {seen.key} is of several stages (stage_index {seen.stage_index}), and a "
            "judge's failures of such runs cannot be judged again"
        )


def row_at(paths: RunPaths, place: Place) -> JsonObject:
    """Return the row that lies at `place` of a run."""
    return _ROW.decode(payload_at(paths.holding(place.file), place))

"""What one saved record lets be seen: who it is, what went on inside it, and how much of that was observed.

Rules:
* Read once, before any check runs; checks decide nothing about what counts as evidence.
* A member of the wrong type is no evidence; only a line that is no JSON object, or a trajectory that is none, is a
  fault of the record.

Source: collection.md §7.2 (the evidence words), §7.3.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

import msgspec

from rollbook.health.calls import Call, CallIndex, calls_of, count, identity
from rollbook.health.trajectory import (
    ABSENT,
    Gap,
    InvalidTrajectoryError,
    Reference,
    Trajectory,
    is_there,
    read_capture,
    read_trajectory,
)
from rollbook.records.identity import ATTEMPT_INDEX_KEY_NAME, MOST_ATTEMPTS, RUN_ID_KEY
from rollbook.records.keys import NG_FAILURE_CLASS_KEY
from rollbook.records.nesting import not_too_deep
from rollbook.scoring.run_timing import TIMEOUT_KINDS

PROJECTION_FAILED: Final = "trajectory_projection_failed"
TURNS_UNAVAILABLE: Final = "turns_unavailable"
SCOPE_INCOMPLETE: Final = "turn_model_call_scope_incomplete"
CALLS_UNOBSERVED: Final = frozenset(
    {
        "model_calls_unavailable",
        "model_call_capture_incomplete",
        "model_call_capture_records_unreadable",
        "model_call_capture_unreadable",
    }
)
_REFERENCE_WORDS: Final = ("unmatched", "ambiguous", "conflict")
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_LARGEST: Final = (1 << 62) - 1


class _Row(msgspec.Struct):
    """The members of a saved record that checks go by."""

    task: Any = msgspec.field(name="_ng_task_index", default=None)
    rollout: Any = msgspec.field(name="_ng_rollout_index", default=None)
    stage: Any = msgspec.field(name="stage_index", default=None)
    attempt: Any = msgspec.field(name=ATTEMPT_INDEX_KEY_NAME, default=None)
    run_id: Any = msgspec.field(name=RUN_ID_KEY, default=None)
    rollout_id: Any = msgspec.field(name="_ng_rollout_id", default=None)
    policy_model: Any = msgspec.field(name="ng_policy_model_server", default=None)
    failure_class: Any = msgspec.field(name=NG_FAILURE_CLASS_KEY, default=None)
    failure_kind: Any = None
    reward: Any = None
    timeouts: msgspec.Raw = ABSENT
    timed_out: Any = None
    agent_timed_out: Any = None
    response: msgspec.Raw = ABSENT
    ng_trajectory: msgspec.Raw = ABSENT
    ng_model_call_capture: msgspec.Raw = ABSENT
    ng_agent_observations: msgspec.Raw = ABSENT


class _Usage(msgspec.Struct, gc=False):
    input_tokens: Any = None
    output_tokens: Any = None
    prompt_tokens: Any = None
    completion_tokens: Any = None


class _WithUsage(msgspec.Struct):
    usage: _Usage | None = None


class _WithOutput(msgspec.Struct):
    output: list[msgspec.Raw] = msgspec.field(default_factory=list)


class _WithGaps(msgspec.Struct):
    gaps: list[Gap] = msgspec.field(default_factory=list)


_ROW: Final = msgspec.json.Decoder(_Row)
_WITH_USAGE: Final = msgspec.json.Decoder(_WithUsage)
_WITH_OUTPUT: Final = msgspec.json.Decoder(_WithOutput)
_WITH_GAPS: Final = msgspec.json.Decoder(_WithGaps)
_EVENTS: Final = msgspec.json.Decoder(list[Any])


_NO_EVENTS: Final[list[Any]] = []
_NO_USAGE: Final = _Usage()
_NO_GAPS: Final = _WithGaps()
_NO_OUTPUT: Final = _WithOutput()
_WITHOUT_USAGE: Final = _WithUsage()


class UnreadableRecordError(ValueError):
    """A line that is no record."""


class Usage(msgspec.Struct, frozen=True):
    """Tokens that a response says were used; None: it does not say."""

    prompt: int | None = None
    completion: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether it says anything."""
        return self.prompt is not None or self.completion is not None


class Bound(msgspec.Struct, frozen=True):
    """A reference, where it stands, and the places of the calls that it can mean."""

    where: dict[str, object]
    reference: Reference
    places: list[int]
    of_turn: bool


class Observed:
    """One readable record and its evidence."""

    def __init__(self, row: _Row) -> None:
        self.row = row
        self.fault: str | None = None
        self.trajectory: Trajectory | None = None
        if is_there(row.ng_trajectory):
            try:
                self.trajectory = read_trajectory(row.ng_trajectory)
            except InvalidTrajectoryError as error:
                self.fault = f"ng_trajectory: {error}"
        self.capture = read_capture(row.ng_model_call_capture) if is_there(row.ng_model_call_capture) else None
        self._usage: Usage | None = None
        self.gaps = frozenset(gap.code for gap in self._gaps())

    def _gaps(self) -> Iterator[Gap]:
        for holder in (self.trajectory, self.capture):
            yield from holder.gaps if holder is not None else ()
        if is_there(self.row.ng_agent_observations):
            yield from _part(_WITH_GAPS, self.row.ng_agent_observations, _NO_GAPS).gaps

    @property
    def task(self) -> int | None:
        """The task index; None when the record has none."""
        return _index(self.row.task)

    @property
    def rollout(self) -> int:
        """The rollout index; 0 when the record has none."""
        return _index(self.row.rollout) or 0

    @property
    def stage(self) -> int | None:
        """The stage of a multi-stage rollout."""
        return _index(self.row.stage)

    @property
    def attempt(self) -> int:
        """The number of the attempt; 0 as well where the record names no run, which alone hands out numbers."""
        named = isinstance(self.row.run_id, str) and bool(self.row.run_id)
        return min(_index(self.row.attempt) or 0, MOST_ATTEMPTS) if named else 0

    @property
    def rollout_id(self) -> str | None:
        """The id that the record or its trajectory gives the rollout."""
        told = self.trajectory.rollout_id if self.trajectory else None
        return next((name for name in (self.row.rollout_id, told) if isinstance(name, str) and name), None)

    @property
    def has_evidence(self) -> bool:
        """Whether the record holds a word about what went on inside; without one, no check of it has evidence."""
        return self.trajectory is not None or self.capture is not None or bool(self.gaps)

    @property
    def sees_trajectory(self) -> bool:
        """Whether the trajectory parses and was projected."""
        return self.trajectory is not None and PROJECTION_FAILED not in self.gaps

    @property
    def sees_turns(self) -> bool:
        """Whether the turns of the agent were observed."""
        return self.sees_trajectory and TURNS_UNAVAILABLE not in self.gaps

    @property
    def sees_calls(self) -> bool:
        """Whether the model calls were observed."""
        is_recorded = self.trajectory is not None or self.capture is not None
        return is_recorded and self.gaps.isdisjoint(CALLS_UNOBSERVED)

    @property
    def has_reference_gap(self) -> bool:
        """Whether a reference was found to mean no call, or several, when the record was made."""
        return any(self.reference_gaps)

    @cached_property
    def reference_gaps(self) -> list[str]:
        """The gaps that tell of references which mean no call, or several."""
        return sorted(code for code in self.gaps if any(word in code for word in _REFERENCE_WORDS))

    @cached_property
    def calls(self) -> list[Call]:
        """Every model call of the record."""
        return calls_of(self.trajectory, self.capture)

    @cached_property
    def bound(self) -> list[Bound]:
        """Every reference of turns and invocations, in order, with the calls it can mean."""
        if self.trajectory is None:
            return []
        index = CallIndex(self.calls)
        of_turns = [
            Bound(_turn(turn.invocation_id, turn.turn_no, place), reference, index.matches(reference), of_turn=True)
            for turn in self.trajectory.turns
            for place, reference in enumerate(turn.model_calls)
        ]
        of_invocations = [
            Bound(
                {"invocation_id": invocation.invocation_id, "reference": place},
                reference,
                index.matches(reference),
                of_turn=False,
            )
            for invocation in self.trajectory.invocations
            for place, reference in enumerate(invocation.model_calls)
        ]
        return of_turns + of_invocations

    @cached_property
    def meant(self) -> dict[int, list[int]]:
        """The places of the calls that each reference can mean, by the reference's identity in memory."""
        return {id(bound.reference): bound.places for bound in self.bound}

    @cached_property
    def owned(self) -> list[int]:
        """The places of the calls that turns or invocations refer to, each once, in the order of the calls."""
        return sorted({bound.places[0] for bound in self.bound if len(bound.places) == 1})

    @cached_property
    def of_turns(self) -> list[int]:
        """The places of the calls that turns refer to, each once, in the order of the calls."""
        return sorted({bound.places[0] for bound in self.bound if bound.of_turn and len(bound.places) == 1})

    @property
    def binding_is_complete(self) -> bool:
        """Whether the turns refer to calls, each reference to exactly one, and no gap says that some are missing."""
        references = [bound for bound in self.bound if bound.of_turn]
        is_whole = self.sees_turns and self.sees_calls and SCOPE_INCOMPLETE not in self.gaps
        return is_whole and bool(references) and all(len(bound.places) == 1 for bound in references)

    @property
    def replayed(self) -> int:
        """How many calls are recorded more often than once."""
        named = [name for call in self.calls if (name := identity(call)) is not None]
        return len(named) - len(set(named))

    @property
    def usage(self) -> Usage:
        """The tokens that the record's response says were used."""
        if self._usage is None:
            told = _part(_WITH_USAGE, self.row.response, _WITHOUT_USAGE).usage or _NO_USAGE
            prompt, completion = count(told.input_tokens), count(told.output_tokens)
            self._usage = Usage(
                prompt if prompt is not None else count(told.prompt_tokens),
                completion if completion is not None else count(told.completion_tokens),
            )
        return self._usage

    @property
    def used_model(self) -> bool | None:
        """Whether a model had a part in it; None when the record holds no response that would tell.

        An empty output shows none where the usage is told and zero, or where nothing is told and no reward was earned.
        """
        answered = self.has_evidence and any(not call.failed and call.completion != 0 for call in self.calls)
        if answered or self.usage.prompt or self.usage.completion:
            return True
        if bytes(memoryview(self.row.response)[:1]) != b"{":
            return None
        has_output = bool(_part(_WITH_OUTPUT, self.row.response, _NO_OUTPUT).output)
        reward = self.row.reward
        return has_output or (not self.usage.is_known and isinstance(reward, int | float) and reward > 0)

    @property
    def timeouts(self) -> list[str]:
        """The kinds of the record's timeout events; a long duration alone is none."""
        row = self.row
        events = _part(_EVENTS, row.timeouts, _NO_EVENTS)
        found = [_kind(event) for event in events if isinstance(event, dict | str)]
        told = found or [kind for kind in (row.failure_kind, row.failure_class) if kind in TIMEOUT_KINDS][:1]
        return told or [name for name in LEGACY_TIMEOUTS if getattr(row, name) is True][:1]


LEGACY_TIMEOUTS: Final = ("timed_out", "agent_timed_out")
"""What records without typed events say instead of a failure's kind: members that are true."""


def observed(line: bytes) -> Observed:
    """Return what the saved `line` lets be seen.

    Raises:
        UnreadableRecordError: it is no JSON object; the message says why.

    """
    try:
        line.decode()
        return Observed(_ROW.decode(not_too_deep(line)))
    except _UNREADABLE as error:
        raise UnreadableRecordError(str(error)) from error


def _part(decoder: Any, text: msgspec.Raw, default: Any) -> Any:
    if not is_there(text):
        return default
    try:
        return decoder.decode(text)
    except _UNREADABLE:
        return default


def _index(value: object) -> int | None:
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value if is_whole and 0 <= value <= _LARGEST else None  # type: ignore[return-value,operator]


def _kind(event: object) -> str:
    if isinstance(event, str):
        return event[:80] or "unknown"
    named = (event.get(key) for key in ("type", "kind", "source", "scope")) if isinstance(event, dict) else ()
    return next((name[:80] for name in named if isinstance(name, str) and name), "unknown")


def _turn(invocation_id: str, turn_no: int, place: int) -> dict[str, object]:
    return {"invocation_id": invocation_id, "turn_no": turn_no, "reference": place}

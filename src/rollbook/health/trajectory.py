"""The parts of `ng_trajectory` and `ng_model_call_capture` that checks go by, read without building the rest.

Rules:
* A trajectory whose members have the wrong type, repeat an identity or point at nothing is invalid; members that are
  missing or not known here are no fault.
* Questions and requests are never built; a response stays text until a check asks for it.

Source: collection.md §8.3, §8.4.
"""

from collections.abc import Hashable, Iterable
from itertools import chain
from typing import Annotated, Any, Final

import msgspec

from rollbook.records.json_values import JsonObject

_Natural = Annotated[int, msgspec.Meta(ge=0)]
_Counting = Annotated[int, msgspec.Meta(ge=1)]
_VERSIONS: Final = "1."


ABSENT: Final = msgspec.Raw()
"""What stands for a member that is not there: one value, told by its identity."""


class InvalidTrajectoryError(ValueError):
    """`ng_trajectory` is there and is none."""


class ModelRef(msgspec.Struct, gc=False):
    """Which model server."""

    type: str | None = None
    name: str | None = None


class Reference(msgspec.Struct, gc=False):
    """Which call a turn or an invocation says it made."""

    model_call_id: str | None = None
    model_ref: ModelRef | None = None
    response_id: str | None = None

    @property
    def points_at_something(self) -> bool:
        """Whether it holds what a call can be told by."""
        return self.model_call_id is not None or (self.model_ref is not None and self.response_id is not None)


class Invocation(msgspec.Struct):
    """One agent that ran."""

    invocation_id: str
    status: str = "unknown"
    model_calls: list[Reference] = msgspec.field(default_factory=list)


class Turn(msgspec.Struct):
    """One step of an agent: what it said, and the calls behind it."""

    invocation_id: str
    turn_no: _Counting
    task_id: Any = None
    rollout_id: Any = None
    answer: Any = None
    reasoning_content: Any = None
    tool_calls: Any = None
    step_count: _Natural = 0
    model_calls: list[Reference] = msgspec.field(default_factory=list)


class TokenStats(msgspec.Struct, gc=False):
    """Tokens of a call; None: not known."""

    prompt_tokens: int | float | None = None
    completion_tokens: int | float | None = None


class ModelCall(msgspec.Struct):
    """A call as the trajectory holds it."""

    model_call_id: str | None = None
    model_ref: ModelRef | None = None
    response_id: str | None = None
    started_at: Any = None
    completed_at: Any = None
    duration_ms: int | float | None = None
    response: msgspec.Raw = ABSENT
    response_metadata: JsonObject | None = None
    token_stats: TokenStats | None = None


class ToolCall(msgspec.Struct, gc=False):
    """A call of a tool."""

    status: str = "unknown"
    duration_ms: int | float | None = None


class Gap(msgspec.Struct, gc=False):
    """Something that could not be observed."""

    code: str
    detail: Any = None


class Trajectory(msgspec.Struct):
    """What happened inside a rollout."""

    schema_version: str = "1.0"
    task_id: Any = None
    rollout_id: Any = None
    invocations: list[Invocation] = msgspec.field(default_factory=list)
    turns: list[Turn] = msgspec.field(default_factory=list)
    model_calls: list[ModelCall] = msgspec.field(default_factory=list)
    tool_calls: list[ToolCall] = msgspec.field(default_factory=list)
    gaps: list[Gap] = msgspec.field(default_factory=list)


class CapturedCall(msgspec.Struct):
    """A call as its capture holds it; whatever a producer wrote is believed where it fits."""

    model_call_id: Any = None
    model_ref: Any = None
    model: Any = None
    response_id: Any = None
    started_at: Any = None
    completed_at: Any = None
    latency_total_ms: Any = None
    status_code: Any = None
    error_category: Any = None
    finish_reason: Any = None
    tokens_in: Any = None
    tokens_out: Any = None
    tool_calls: Any = None
    response: msgspec.Raw = ABSENT


class Capture(msgspec.Struct):
    """What was recorded of a rollout's model calls."""

    calls: list[CapturedCall] = msgspec.field(default_factory=list)
    gaps: list[Gap] = msgspec.field(default_factory=list)


_TRAJECTORY: Final = msgspec.json.Decoder(Trajectory)
_CAPTURE: Final = msgspec.json.Decoder(Capture)
_NULL: Final = b"null"
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def is_there(text: msgspec.Raw) -> bool:
    """Whether a member is there and not null."""
    if text is ABSENT:
        return False
    view = memoryview(text)
    return len(view) > len(_NULL) or bytes(view) not in {b"", _NULL}


def read_trajectory(text: msgspec.Raw) -> Trajectory:
    """Return the trajectory that `text` is.

    Raises:
        InvalidTrajectoryError: it is none; the message says why.

    """
    try:
        trajectory = _TRAJECTORY.decode(text)
    except _UNREADABLE as error:
        raise InvalidTrajectoryError(str(error)) from error
    why = _fault(trajectory)
    if why is not None:
        raise InvalidTrajectoryError(why)
    return trajectory


def read_capture(text: msgspec.Raw) -> Capture | None:
    """Return the capture that `text` is; None when it is none."""
    try:
        return _CAPTURE.decode(text)
    except _UNREADABLE:
        return None


def _fault(trajectory: Trajectory) -> str | None:
    if not trajectory.schema_version.startswith(_VERSIONS):
        return f"schema_version is {trajectory.schema_version[:40]!r}; 1.0 is known"
    of_turns = (reference for turn in trajectory.turns for reference in turn.model_calls)
    of_invocations = (reference for invocation in trajectory.invocations for reference in invocation.model_calls)
    if not all(reference.points_at_something for reference in chain(of_turns, of_invocations)):
        return "a reference names neither a call nor a model and its response"
    return _repeated(trajectory) or _foreign(trajectory)


def _repeated(trajectory: Trajectory) -> str | None:
    """Return which identity is there twice, if one is."""
    identities: dict[str, Iterable[Hashable]] = {
        "invocation_id": (invocation.invocation_id for invocation in trajectory.invocations),
        "model_call_id": (call.model_call_id for call in trajectory.model_calls if call.model_call_id is not None),
        "turn": ((turn.invocation_id, turn.turn_no) for turn in trajectory.turns),
    }
    for name, found in identities.items():
        seen: set[Hashable] = set()
        for identity in found:
            if identity in seen:
                return f"the same {name} is there twice: {str(identity)[:80]}"
            seen.add(identity)
    return None


def _foreign(trajectory: Trajectory) -> str | None:
    """Return which turn is of another rollout, if one is."""
    for turn in trajectory.turns:
        for name in ("task_id", "rollout_id"):
            own, whole = getattr(turn, name), getattr(trajectory, name)
            if own is not None and whole is not None and own != whole:
                return f"turn {turn.turn_no} has another {name} than its trajectory"
    return None

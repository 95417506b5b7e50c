"""The model calls of a record, from its trajectory and its capture, and which of them a reference means.

Rules:
* A call that both hold is one call: told by its id, else by its model and response. What the trajectory does not say
  is taken from the capture.
* A reference binds when exactly one call matches; ownership is never guessed.

Source: collection.md §7.2, §8.2, §8.3, §8.4.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from rollbook.health.trajectory import (
    Capture,
    CapturedCall,
    ModelCall,
    ModelRef,
    Reference,
    TokenStats,
    Trajectory,
    is_there,
)
from rollbook.records.json_values import text_or_none

_FAILED: Final = frozenset({"failed", "error", "cancelled"})
_CLIENT_ERROR: Final = 400
_FINISH_KEYS: Final = ("finish_reason", "stop_reason")
_MOST: Final = 10**12
"""No count of tokens, and no number of milliseconds, is greater."""
_CUT_SHORT: Final = frozenset({"length", "max_output_tokens", "max_tokens"})
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class _Choice(msgspec.Struct, gc=False):
    finish_reason: Any = None


class _Body(msgspec.Struct):
    """What a response says of itself, without what the model said."""

    id: Any = None
    status: Any = None
    finish_reason: Any = None
    stop_reason: Any = None
    incomplete_details: Any = None
    choices: list[_Choice] | None = None

    @property
    def finish(self) -> str | None:
        """Why it ended, in whichever dialect it says so."""
        details = self.incomplete_details
        reason = details.get("reason") if isinstance(details, Mapping) else None
        chosen = self.choices[0].finish_reason if self.choices else None
        return next(filter(None, map(text_or_none, (self.finish_reason, self.stop_reason, reason, chosen))), None)


_ANYTHING: Final = msgspec.json.Decoder()
_BODY: Final = msgspec.json.Decoder(_Body)
_NO_BODY: Final = _Body()


class Call(msgspec.Struct, frozen=True):
    """One call of a model. `started`, `ended` in unix seconds, `seconds` long; None: not known."""

    call_id: str | None = None
    model: tuple[str | None, str | None] = (None, None)
    response_id: str | None = None
    started: float | None = None
    ended: float | None = None
    seconds: float | None = None
    prompt: int | None = None
    completion: int | None = None
    status_code: int | None = None
    error: str | None = None
    state: str | None = None
    finish: str | None = None
    has_tool_calls: bool = False
    body: msgspec.Raw | None = None

    @property
    def failed(self) -> bool:
        """Whether it brought no answer."""
        bad_status = self.status_code is not None and self.status_code >= _CLIENT_ERROR
        return bad_status or self.error is not None or self.state in _FAILED

    @property
    def was_cut_short(self) -> bool:
        """Whether the model reached its limit of tokens."""
        return self.finish in _CUT_SHORT

    @property
    def time(self) -> float | None:
        """When it was, to tell which came last."""
        return self.started if self.started is not None else self.ended

    def response(self) -> object:
        """Return the decoded body of its response; None when there is none, or none that can be read."""
        try:
            return None if self.body is None else _ANYTHING.decode(self.body)
        except _UNREADABLE:
            return None

    def locator(self, index: int) -> dict[str, object]:
        """Return where it is: its id, else its place among the record's calls."""
        return {"model_call_id": self.call_id} if self.call_id is not None else {"model_call": index}


def calls_of(trajectory: Trajectory | None, capture: Capture | None) -> list[Call]:
    """Return every call that the record holds, each once."""
    calls = [_told(call) for call in trajectory.model_calls] if trajectory else []
    if capture is None:
        return calls
    alone = {name: number for number, call in enumerate(calls) if (name := identity(call)) is not None}
    for captured in map(_captured, capture.calls):
        number = alone.pop(identity(captured) or (), None)
        if number is None:
            calls.append(captured)
        else:
            calls[number] = _both(calls[number], captured)
    return calls


def identity(call: Call) -> tuple[str | None, ...] | None:
    """Return what a call is told by: its id, else its model and response; None when it has neither."""
    if call.call_id is not None:
        return (call.call_id,)
    return None if call.response_id is None else (call.model[1], call.response_id)


def _both(call: Call, captured: Call) -> Call:
    """Return `call` with what only the capture knows."""
    missing = {
        name: getattr(captured, name)
        for name in ("response_id", "started", "ended", "seconds", "prompt", "completion", "status_code", "error")
        if getattr(call, name) is None
    }
    return replace(
        call,
        **missing,
        model=call.model if call.model[1] is not None else captured.model,
        state=call.state or captured.state,
        finish=call.finish or captured.finish,
        has_tool_calls=call.has_tool_calls or captured.has_tool_calls,
        body=call.body if call.body is not None else captured.body,
    )


def _told(call: ModelCall) -> Call:
    facts, body = call.response_metadata or {}, _body(call.response)
    stats = call.token_stats or TokenStats()
    return Call(
        call_id=call.model_call_id,
        model=_model(call.model_ref if call.model_ref is not None else facts.get("model_ref"), facts.get("model")),
        response_id=call.response_id or text_or_none(facts.get("response_id")) or text_or_none(body.id),
        started=_moment(call.started_at),
        ended=_moment(call.completed_at),
        seconds=seconds_of(call.duration_ms),
        prompt=count(stats.prompt_tokens),
        completion=count(stats.completion_tokens),
        status_code=_status(facts),
        error=text_or_none(facts.get("error_category")),
        state=text_or_none(facts.get("status")) or text_or_none(body.status),
        finish=next(filter(None, (text_or_none(facts.get(key)) for key in _FINISH_KEYS)), body.finish),
        body=_present(call.response),
    )


def _captured(call: CapturedCall) -> Call:
    body = _body(call.response)
    return Call(
        call_id=text_or_none(call.model_call_id),
        model=_model(call.model_ref, call.model),
        response_id=text_or_none(call.response_id) or text_or_none(body.id),
        started=_moment(call.started_at),
        ended=_moment(call.completed_at),
        seconds=seconds_of(call.latency_total_ms),
        prompt=count(call.tokens_in),
        completion=count(call.tokens_out),
        status_code=call.status_code if _is_whole(call.status_code) else None,
        error=text_or_none(call.error_category),
        state=text_or_none(body.status),
        finish=text_or_none(call.finish_reason) or body.finish,
        has_tool_calls=bool(call.tool_calls),
        body=_present(call.response),
    )


def _present(text: msgspec.Raw) -> msgspec.Raw | None:
    return text if is_there(text) else None


def _body(text: msgspec.Raw) -> _Body:
    try:
        return _NO_BODY if _present(text) is None else _BODY.decode(text)
    except _UNREADABLE:
        return _NO_BODY


def _model(ref: object, name: object) -> tuple[str | None, str | None]:
    if isinstance(ref, ModelRef):
        return ref.type, ref.name
    if isinstance(ref, Mapping):
        return text_or_none(ref.get("type")), text_or_none(ref.get("name"))
    return None, text_or_none(ref) or text_or_none(name)


def _status(facts: Mapping[str, Any]) -> int | None:
    found = (facts.get(name) for name in ("status_code", "http_status", "status"))
    return next((value for value in found if _is_whole(value)), None)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def count(value: object) -> int | None:
    """Return `value` as a number of tokens; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    is_one = 0 <= value <= _MOST and (isinstance(value, int) or value.is_integer())
    return int(value) if is_one else None


def seconds_of(milliseconds: object) -> float | None:
    """Return a duration in seconds; None when it is none."""
    if isinstance(milliseconds, bool) or not isinstance(milliseconds, int | float):
        return None
    return float(milliseconds) / 1000 if 0 <= milliseconds <= _MOST else None


def _moment(value: object) -> float | None:
    """Return a time as unix seconds: a number, or a date and time as text."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if abs(value) < 1e15 else None  # noqa: PLR2004  beyond any date
    if not isinstance(value, str):
        return None
    try:
        moment = datetime.fromisoformat(value)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


class CallIndex:
    """Where the calls of a record are, by what references name."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._calls = calls
        self._by_id: dict[str, list[int]] = {}
        self._by_response: dict[str, list[int]] = {}
        for place, call in enumerate(calls):
            if call.call_id is not None:
                self._by_id.setdefault(call.call_id, []).append(place)
            if call.response_id is not None:
                self._by_response.setdefault(call.response_id, []).append(place)

    def matches(self, reference: Reference) -> list[int]:
        """Return the places of the calls that `reference` can mean."""
        if reference.model_call_id is not None:
            named = self._by_id.get(reference.model_call_id, [])
        else:
            found = self._by_response.get(reference.response_id or "", [])
            named = [place for place in found if self._calls[place].model[1] is not None]
        return [place for place in named if _fits(reference, self._calls[place])]


def _fits(reference: Reference, call: Call) -> bool:
    """Whether nothing that both say differs."""
    pairs = [(reference.response_id, call.response_id)]
    if reference.model_ref is not None:
        pairs += [(reference.model_ref.type, call.model[0]), (reference.model_ref.name, call.model[1])]
    return all(said is None or known is None or said == known for said, known in pairs)

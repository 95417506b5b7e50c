"""A saved row → a record: the one place that knows which keys mean which ending.

Rules:
* Only the keys that decide are decoded; the rest of a row is never built.
* Identity is strict; what a producer may have written as anything is read as what it is, and believed where it fits.

Source: collection.md §1.3, §1.6, §1.7, §4.2, §4.11, §5.4.1, §21.1.
"""

import math
from functools import lru_cache
from typing import Annotated, Any, Final, Literal

import msgspec

from rollbook.records import keys
from rollbook.records.failure_kinds import KILL_SHAPED_FAILURE_CLASS, Delivery, delivery_of, stage_of
from rollbook.records.identity import (
    ATTEMPT_INDEX_KEY_NAME,
    MOST_ATTEMPTS,
    ROLLOUT_INDEX_KEY_NAME,
    RUN_ID_KEY,
    TASK_INDEX_KEY_NAME,
    RolloutKey,
)
from rollbook.records.json_values import JsonMapping
from rollbook.records.nesting import not_too_deep
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Outcome, Scored, Unscored
from rollbook.records.place import File, Place
from rollbook.records.record import Record
from rollbook.records.utf8 import utf8

SHALLOW: Final = 1 << 14
"""A line of so many bytes cannot be nested so deep that skipping its values exhausts a stack."""
RECORD_VERSION: Final = 1
UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What decoding a line of somebody's file may raise."""
_ROLLOUTS_OF_A_TASK: Final = 0xFFFFFFFF

_Index = Annotated[int, msgspec.Meta(ge=0)]
_Attempt = Annotated[int, msgspec.Meta(ge=0, le=MOST_ATTEMPTS)]


class _Head(msgspec.Struct, gc=False, kw_only=True):
    """The keys of a saved row that say who it is and how it ended.

    Identity is strict; what a producer may have written as anything is read as what it is, and believed where it fits.
    """

    task: _Index = msgspec.field(name=TASK_INDEX_KEY_NAME)
    rollout: Annotated[int, msgspec.Meta(ge=0, le=_ROLLOUTS_OF_A_TASK)] = msgspec.field(name=ROLLOUT_INDEX_KEY_NAME)
    attempt: _Attempt | None = msgspec.field(name=ATTEMPT_INDEX_KEY_NAME, default=None)
    run_id: Any = msgspec.field(name=RUN_ID_KEY, default=None)
    agent_ref: msgspec.Raw = msgspec.Raw()
    server: Any = msgspec.field(name=keys.NG_ENVIRONMENT_SERVER_KEY, default=None)


class ResultHead(_Head, gc=False):
    """What a result's row says of itself."""

    reward: Any = None
    mask_sample: Any = None
    rejudged: Any = msgspec.field(name=keys.REJUDGED_FAILURE_ID_KEY, default=None)


class Usage(msgspec.Struct, gc=False):
    """How many tokens a response says it used."""

    input_tokens: Any = None
    output_tokens: Any = None
    total_tokens: Any = None


class _Response(msgspec.Struct, gc=False):
    usage: Usage | list[msgspec.Raw] | str | int | float | bool | None = None


class UsageHead(ResultHead, gc=False):
    """What a result's row says of itself, and of the tokens that it used."""

    response: _Response | list[msgspec.Raw] | str | int | float | bool | None = None


class PlainUsage(msgspec.Struct, gc=False):
    """Tokens, as almost all results state them."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0


class _PlainResponse(msgspec.Struct, gc=False):
    usage: PlainUsage | None = None


class PlainResult(_Head, gc=False):
    """A result as almost all are: a number for a reward, nothing masked, and the name of a run."""

    reward: float
    run_id: str = msgspec.field(name=RUN_ID_KEY)
    mask_sample: Literal[False] | None = None


class PlainUsageResult(PlainResult, gc=False):
    """A plain result, and the tokens that it used."""

    response: _PlainResponse | None = None


class _FailureHead(_Head, gc=False):
    failure_class: Any = msgspec.field(name=keys.NG_FAILURE_CLASS_KEY, default=None)
    legacy_class: Any = msgspec.field(name=keys.NG_FAILURE_LEGACY_CLASS_KEY, default=None)
    message: Any = msgspec.field(name=keys.NG_FAILURE_MESSAGE_KEY, default=None)
    terminal: Any = msgspec.field(name=keys.NG_TERMINAL_KEY, default=None)
    stage: Any = msgspec.field(name=keys.NG_FAILURE_STAGE_KEY, default=None)
    delivery: Any = msgspec.field(name=keys.NG_FAILURE_DELIVERY_KEY, default=None)
    exception_type: Any = msgspec.field(name=keys.NG_FAILURE_TYPE_KEY, default=None)
    http_status: Any = msgspec.field(name=keys.NG_FAILURE_HTTP_STATUS_KEY, default=None)
    counts_as_zero: Any = msgspec.field(name=keys.NG_FAILURE_COUNTS_AS_ZERO_KEY, default=None)
    kind: Any = msgspec.field(name=keys.STATUS_FAILURE_KIND_KEY, default=None)
    no_persist: Any = msgspec.field(name=keys.NG_NO_PERSIST_KEY, default=None)
    omitted: Any = msgspec.field(name=keys.NG_OMITTED_ROLLOUT_KEY, default=None)
    drained: Any = msgspec.field(name=keys.NG_DISPATCH_DRAINED_KEY, default=None)
    unrouted: Any = msgspec.field(name=keys.NG_UNROUTED_RUN_ERROR_KEY, default=None)
    response: msgspec.Raw = msgspec.Raw()
    typed: msgspec.Raw = msgspec.field(name=keys.ROLLOUT_FAILURE_KEY, default=msgspec.Raw())
    deliverables: Any = msgspec.field(name=keys.DELIVERABLES_KEY, default=None)
    reuses_deliverable: Any = msgspec.field(name=keys.REUSE_CACHED_DELIVERABLE_KEY, default=None)
    reward: Any = None


class _Typed(msgspec.Struct):
    schema_version: Any = RECORD_VERSION


class _Answer(msgspec.Struct):
    output: list[msgspec.Raw] = msgspec.field(default_factory=list)


RESULT_HEAD: Final = msgspec.json.Decoder(ResultHead)
PLAIN_RESULT: Final = msgspec.json.Decoder(PlainResult)
PLAIN_USAGE: Final = msgspec.json.Decoder(PlainUsageResult)
USAGE_HEAD: Final = msgspec.json.Decoder(UsageHead)
_FAILURE: Final = msgspec.json.Decoder(_FailureHead)
_TYPED: Final = msgspec.json.Decoder(_Typed)
_ANSWER: Final = msgspec.json.Decoder(_Answer)


def read_row(line: bytes, file: File, place: Place | None = None) -> Record:
    """Decode what decides about one saved row, which lies at `place`.

    Raises:
        msgspec.DecodeError: the line is no JSON object, or names no rollout.
        UnicodeDecodeError: it is no UTF-8, wherever in it that is.

    """
    if len(utf8(line)) > SHALLOW:
        not_too_deep(line)
    if file is File.RESULTS:
        result = RESULT_HEAD.decode(line)
        judged_anew = isinstance(result.rejudged, str)
        return _record(result, _result(result.reward, result.mask_sample), place, is_rejudgment=judged_anew)
    failure = _FAILURE.decode(line)
    _check_version(bytes(failure.typed))
    return _record(failure, _failure(failure), place)


def _check_version(typed: bytes) -> None:
    version = _TYPED.decode(typed).schema_version if typed else RECORD_VERSION
    if version != RECORD_VERSION:
        raise msgspec.ValidationError(f"a failure record of schema version {version!r}; this version reads 1")


def _record(head: _Head, outcome: Outcome, place: Place | None, *, is_rejudgment: bool = False) -> Record:
    return Record(
        RolloutKey(head.task, head.rollout),
        head.attempt or 0,
        outcome,
        _text(head.run_id),
        _agent_in(bytes(head.agent_ref)),
        _text(head.server),
        place,
        is_rejudgment,
    )


@lru_cache(maxsize=1024)
def _agent_in(agent_ref: bytes) -> str | None:
    """Return the name in an `agent_ref`; a run has few of them."""
    read = msgspec.json.decode(agent_ref) if agent_ref else None
    return _text(read.get("name")) if isinstance(read, dict) else None


class _PlanHead(msgspec.Struct, gc=False):
    task: _Index = msgspec.field(name=TASK_INDEX_KEY_NAME)
    rollout: Annotated[int, msgspec.Meta(ge=0, le=_ROLLOUTS_OF_A_TASK)] = msgspec.field(name=ROLLOUT_INDEX_KEY_NAME)
    agent_ref: msgspec.Raw = msgspec.Raw()
    server: Any = msgspec.field(name=keys.NG_ENVIRONMENT_SERVER_KEY, default=None)


PLAN_HEAD: Final = msgspec.json.Decoder(_PlanHead)


class PlannedLine(msgspec.Struct, frozen=True):
    """Who a line of the plan is about, and where it goes: its agent, or the server that it is stamped with."""

    key: RolloutKey
    agent: str | None
    server: str | None


def planned_line(line: bytes) -> PlannedLine:
    """Decode what identifies one line of the plan.

    Raises:
        msgspec.DecodeError: the line is no JSON object, or names no rollout.

    """
    head = PLAN_HEAD.decode(utf8(line))
    return PlannedLine(RolloutKey(head.task, head.rollout), *named(bytes(head.agent_ref), head.server))


def usage_of(head: ResultHead) -> Usage | None:
    """Return the usage that a result's response states, if it is one."""
    response = head.response if type(head) is UsageHead else None
    if type(response) is not _Response:
        return None
    usage = response.usage
    return usage if type(usage) is Usage else None


def named(agent_ref: bytes, server: object) -> tuple[str | None, str | None]:
    """Return the agent that an `agent_ref` names, and a server where it is one."""
    return _agent_in(agent_ref), _text(server)


def reward_of(value: object) -> float | None:
    """Return a reward as a number (true is 1, false is 0), or None when it is no finite number."""
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def result_outcome(payload: JsonMapping) -> Scored | Masked | Unscored:
    """Return the ending of a reply that reports no failure."""
    return _result(payload.get(keys.REWARD_KEY), payload.get(keys.MASK_SAMPLE_KEY))


def _result(reward: object, mask_sample: object) -> Scored | Masked | Unscored:
    number = reward_of(reward)
    if mask_sample:
        return Masked(number)
    return Unscored() if number is None else Scored(number)


def _failure(head: _FailureHead) -> Outcome:
    message = _text(head.message) or ""
    if head.unrouted:
        return Evidence(message)
    if head.omitted and head.drained:
        return NeverStarted(message)
    failure_class = _text(head.failure_class) or KILL_SHAPED_FAILURE_CLASS
    if head.omitted or _is_saved_interruption(head):
        told = _text(head.legacy_class) or failure_class
        delivery, stage = _interruption_delivery(head), stage_of(head.stage)
        return Interrupted(told, message, delivery, stage, omitted=bool(head.omitted))
    return Failed(
        failure_class=failure_class,
        message=message,
        kind=_text(head.kind),
        stage=stage_of(head.stage),
        terminal=bool(head.terminal),
        delivery=delivery_of(head.delivery),
        exception_type=_text(head.exception_type),
        http_status=head.http_status if isinstance(head.http_status, int) else None,
        legacy_class=_text(head.legacy_class),
        counts_as_zero=bool(head.counts_as_zero),
        reuses_deliverable=bool(head.reuses_deliverable),
        reward=reward_of(head.reward),
        saved_answer=bool(head.deliverables) or _holds_output(bytes(head.response)),
    )


def _is_saved_interruption(head: _FailureHead) -> bool:
    """Whether a managed run wrote an attempt down that left no result; without a run's name it is a failure."""
    return bool(head.no_persist and head.run_id) and head.failure_class == KILL_SHAPED_FAILURE_CLASS


def _interruption_delivery(head: _FailureHead) -> Delivery:
    return Delivery.POSSIBLY_DELIVERED if head.delivery is None else delivery_of(head.delivery)


def _holds_output(response: bytes) -> bool:
    try:
        return bool(response and _ANSWER.decode(response).output)
    except msgspec.DecodeError:
        return False


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None

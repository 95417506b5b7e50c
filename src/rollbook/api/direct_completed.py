"""A finished rollout of a direct call: the one value in which everything that is known of it passes by.

Rules:
* What belongs beside a result travels here, never inside it.
* Whoever records rollouts is told of each that was sent, once: as it ended, or as cut off by a close.

Source: collection.md §3.2, §11.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol, assert_never

import msgspec

from rollbook.api.direct_rows import DirectRow
from rollbook.api.direct_sending import Answer, Answered, Refused
from rollbook.outcomes.classify import ending_of_reply, ending_of_send_failure
from rollbook.records.ending import Ending
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import KILL_SHAPED_FAILURE_CLASS
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import NG_FAILURE_CLASS_KEY
from rollbook.records.nesting import not_too_deep
from rollbook.records.outcome import Failed, Interrupted, NeverStarted
from rollbook.records.sends import Sends
from rollbook.scoring.performance import PERF_KEY

_MILLISECONDS: Final = 1000.0
_CUT: Final = "the iterator was closed while the rollout ran"


@dataclass(frozen=True, slots=True)
class CompletedRollout:
    """A row that is done with, and how it ended.

    `result` is the decoded reply to `/run`, untouched, where one came that is an object; `reply` what carried it.
    `failure` is how the last send failed, if no reply came. `seconds` is the wall time of a `/run` that did not fail,
    its body included.
    """

    row: DirectRow
    ending: Ending
    result: JsonObject | None = None
    reply: Reply | None = None
    failure: SendFailed | None = None
    seconds: float | None = None
    sends: Sends = field(default_factory=Sends)

    @property
    def performance(self) -> JsonObject:
        """What is measured of a `/run` that did not fail, by the key that records have it under."""
        return {} if self.latency_ms is None else {PERF_KEY: {"total_latency_ms": round(self.latency_ms, 3)}}

    @property
    def latency_ms(self) -> float | None:
        """The wall time in milliseconds."""
        return self.seconds * _MILLISECONDS if self.seconds is not None else None


class RolloutSink(Protocol):
    """Who records the rollouts of a call."""

    async def ready(self) -> None:
        """Raise where what is sent now could not be recorded; asked before a row is sent, whose awaitable raises it."""
        ...

    async def write(self, completed: CompletedRollout) -> object:
        """Record one that was sent or refused; what this raises, its awaitable raises. It is not cut short."""
        ...

    async def close(self) -> None:
        """Be told, once, that every rollout ended or that the iterator was closed; no rollout follows."""
        ...


def completed(row: DirectRow, answer: Answer, sends: Sends) -> CompletedRollout:
    """Return what an answer makes of a row."""
    match answer:
        case Refused(reason):
            return CompletedRollout(row, Ending(NeverStarted(reason)))
        case SendFailed():
            ending = _with_delivery(ending_of_send_failure(answer), sends)
            return CompletedRollout(row, ending, failure=answer, sends=sends)
        case Answered(reply, seconds):
            ending = ending_of_reply(reply, row.rollout)
            if ending.run_failed:
                return CompletedRollout(row, ending, reply=reply, sends=sends)
            return CompletedRollout(row, ending, _untouched(reply, ending), reply, seconds=seconds, sends=sends)
    assert_never(answer)


def cut_off(row: DirectRow, sends: Sends) -> CompletedRollout:
    """Return a row whose request was given up because the iterator was closed."""
    outcome = Interrupted(KILL_SHAPED_FAILURE_CLASS, _CUT, delivery=sends.delivery)
    return CompletedRollout(row, Ending(outcome), sends=sends)


def has_no_result(done: CompletedRollout) -> bool:
    """Whether what came back is no result, and does not itself report a failure in the way of an agent's reply."""
    if not isinstance(done.ending.outcome, Failed):
        return False
    return done.ending.run_failed or not _reports_itself(done)


def _reports_itself(done: CompletedRollout) -> bool:
    reply: JsonMapping = done.result or {}
    return not done.row.rollout.is_episode and reply.get(NG_FAILURE_CLASS_KEY) is not None


def _with_delivery(ending: Ending, sends: Sends) -> Ending:
    if not isinstance(ending.outcome, Failed):
        return ending
    return msgspec.structs.replace(ending, outcome=msgspec.structs.replace(ending.outcome, delivery=sends.delivery))


def _untouched(reply: Reply, ending: Ending) -> JsonObject:
    if ending.kept is not None:
        return ending.fields()
    payload = msgspec.json.decode(not_too_deep(reply.body))
    return dict(payload) if isinstance(payload, Mapping) else {}

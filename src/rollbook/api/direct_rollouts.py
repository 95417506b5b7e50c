"""A row → what a direct caller gets for it: the reply as it came, a failure as a value, or the error itself.

Rules:
* A row that ran resolves to its reply and nothing else, unless the caller asked for more.
* Failures are values when they are routed, and otherwise the error of their own awaitable, and of no other.
* A row that was never sent resolves to a result that says so; it is no failure.

Source: collection.md §3.5, §3.7, §11, §21.2 (17).
"""

import asyncio
import logging
from dataclasses import dataclass
from typing import Any, Final

from rollbook.api.direct_completed import CompletedRollout, RolloutSink, completed, cut_off, has_no_result
from rollbook.api.direct_errors import DirectCallError, error_of_reply, error_of_result, error_of_send
from rollbook.api.direct_rows import DirectRow
from rollbook.api.direct_sending import Sending
from rollbook.dispatch.waiting import to_the_end
from rollbook.records.codec import failure_fields
from rollbook.records.failure_kinds import CANCELLED_FAILURE_CLASS
from rollbook.records.failure_report import report_fields
from rollbook.records.identity import (
    ATTEMPT_INDEX_KEY_NAME,
    ROLLOUT_ID_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    RUN_ID_KEY,
    TASK_INDEX_KEY_NAME,
)
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import NG_DISPATCH_DRAINED_KEY, NG_FAILURE_CLASS_KEY, NG_NO_PERSIST_KEY
from rollbook.records.outcome import Failed, NeverStarted
from rollbook.records.rollout_failure import RolloutFailure, typed_failure
from rollbook.records.sends import Sends

_LOG = logging.getLogger(__name__)
IDENTITY_KEYS: Final = (
    ROLLOUT_ID_KEY_NAME,
    TASK_INDEX_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    ATTEMPT_INDEX_KEY_NAME,
    RUN_ID_KEY,
)
"""What an enriched result carries of its row."""

RowResult = tuple[dict[str, Any], dict[str, Any] | RolloutFailure]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an enriched result is to carry of the model calls that were captured while it was made."""

    include_payloads: bool = True
    delete_capture: bool = False

    def __post_init__(self) -> None:
        """Refuse to throw away what nobody keeps.

        Raises:
            DirectCallError: captures are to be deleted, and their payloads not kept.

        """
        if self.delete_capture and not self.include_payloads:
            raise DirectCallError(
                "delete_model_call_capture needs include_model_call_payloads; nothing else keeps them"
            )


@dataclass(frozen=True, slots=True)
class Handover:
    """In which form the rollouts of one call are handed over.

    `route_failures` makes a failed `/run` a value; `typed` makes failures of rows that name their run and rollout typed
    records, and looks at their replies; `evidence` enriches their results; `sink` is told of everything that was sent.
    """

    route_failures: bool = False
    typed: bool = False
    evidence: Evidence | None = None
    sink: RolloutSink | None = None


@dataclass(frozen=True, slots=True)
class DirectRollouts:
    """Carries the rows of one call."""

    sending: Sending
    handover: Handover

    async def carry(self, row: DirectRow) -> RowResult:
        """Send `row`, and return it with what it came to.

        Raises:
            aiohttp.ClientError, TimeoutError, json.JSONDecodeError, InvalidRolloutResult: its `/run` failed, and
                failures are not routed.

        """
        sends, sink = Sends(), self.handover.sink
        try:
            done = completed(row, await self.sending.answer(row, sends), sends)
        except asyncio.CancelledError:
            if sink is not None and sends.exchanges:
                await to_the_end(sink.write(cut_off(row, sends)))
            raise
        if done.seconds is not None:
            self.sending.budget.tracker.record(done.seconds)
        if sink is not None:
            await to_the_end(sink.write(done))
        return row.row, await self._result(done)

    async def _result(self, done: CompletedRollout) -> JsonObject | RolloutFailure:
        outcome, row = done.ending.outcome, done.row
        if isinstance(outcome, NeverStarted):
            return drained_result(outcome.reason)
        looked_at = self.handover.typed and row.run_id is not None
        if isinstance(outcome, Failed) and (has_no_result(done) if looked_at else done.ending.run_failed):
            return self._failure(done, outcome)
        result = done.result or {}
        if self.handover.evidence is None or row.run_id is None:
            return result
        named = {key: row.row[key] for key in IDENTITY_KEYS if key in row.row and key not in result}
        return await with_evidence(done, result | named, self.handover.evidence)

    def _failure(self, done: CompletedRollout, failed: Failed) -> JsonObject | RolloutFailure:
        row = done.row
        _LOG.warning("/run of %s on %s failed: %s", row.name, row.rollout.server, failed.message)
        if not self.handover.route_failures:
            raise _error(done, failed)
        typed = None
        if self.handover.typed and row.rollout_id is not None:
            typed = typed_failure(failed, run_id=row.run_id, rollout_id=row.rollout_id, attempt=row.attempt)
        if typed is not None:
            return typed
        report = done.ending.report
        return failure_fields(failed) | (report_fields(report) if report is not None else {}) | done.sends.fields()


async def with_evidence(done: CompletedRollout, result: JsonObject, evidence: Evidence) -> JsonObject:
    """Return `result` with what went on inside the rollout: captured model calls, trajectory, performance.

    Nothing is captured as yet: what is known is the dispatcher's wall time.
    """
    del evidence
    return result | done.performance


def drained_result(reason: str) -> JsonObject:
    """Return the result of a row that was never sent for want of time."""
    return {
        NG_FAILURE_CLASS_KEY: CANCELLED_FAILURE_CLASS,
        NG_NO_PERSIST_KEY: True,
        NG_DISPATCH_DRAINED_KEY: True,
        "error_message": reason,
    }


def _error(done: CompletedRollout, failed: Failed) -> Exception:
    if done.failure is not None:
        error = error_of_send(done.failure)
    elif done.reply is not None and done.ending.run_failed:
        error = error_of_reply(done.reply, failed, _url(done))
    else:
        error = error_of_result(failed)
    if len(done.sends.exchanges) > 1:
        error.add_note(f"sent {len(done.sends.exchanges)} times; {failed.delivery.value}")
    return error


def _url(done: CompletedRollout) -> str:
    host = done.sends.exchanges[-1].host or done.row.rollout.server
    return f"http://{host}/run"

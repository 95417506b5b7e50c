"""An answer that was kept, judged once more: which row follows which.

Rules:
* A re-judgment binds one saved answer of one attempt: another answer, attempt or rollout is never one.
* It names its predecessor by the failure's id, or by the digest of the saved result; without either there is no link.
* An admission is written before the judge is asked; the row that closes it repeats all of it.

Source: collection.md §5.4.2, §5.4.7, §20 (4), §21.3 (23).
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from rollbook.records import keys
from rollbook.records.failure_kinds import KILL_SHAPED_FAILURE_CLASS
from rollbook.records.identity import ATTEMPT_INDEX_KEY_NAME, RUN_ID_KEY
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.row_identity import is_same_attempt

COUNTS_AS_ZERO_ROW_KEY: Final = keys.NG_FAILURE_COUNTS_AS_ZERO_KEY
NG_FAILURE_ID_KEY: Final = keys.NG_FAILURE_ID_KEY
REJUDGED_FAILURE_ID_KEY: Final = keys.REJUDGED_FAILURE_ID_KEY
REJUDGED_OBSERVATIONS_KEY: Final = "_ng_rejudged_failure_observations"
REJUDGE_OPERATION_ID_KEY: Final = "_ng_rejudge_operation_id"
RESULT_PREDECESSOR_PREFIX: Final = "result-sha256:"

_ANSWER_KEYS: Final = (keys.RESPONSE_KEY, keys.DELIVERABLES_KEY)


class RejudgeAdmission(BaseModel):
    """One re-judgment that was admitted: `identity` is the logical rollout id, `admitted_at` an ISO 8601 time."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)

    operation_id: str = Field(min_length=1)
    identity: str = Field(min_length=1)
    attempt: int = Field(ge=0)
    predecessor_id: str = Field(min_length=1)
    predecessor_sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    admitted_at: str = Field(min_length=1)

    @property
    def links(self) -> JsonObject:
        """What the row that closes this admission carries."""
        return {
            REJUDGE_OPERATION_ID_KEY: self.operation_id,
            REJUDGED_FAILURE_ID_KEY: self.predecessor_id,
            REJUDGED_OBSERVATIONS_KEY: {
                "predecessor_sha256": self.predecessor_sha256,
                "admitted_at": self.admitted_at,
            },
        }


def row_sha256(row: JsonMapping) -> str:
    """Return the digest of a whole row, however its keys are ordered.

    The attempt number is left out: legacy migration may have given it, and it is compared on its own.
    """
    kept = {key: value for key, value in row.items() if key != ATTEMPT_INDEX_KEY_NAME}
    return hashlib.sha256(json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def rejudge_predecessor_id(row: JsonMapping) -> str | None:
    """Return the id that a re-judgment names `row` by: a failure's own, a saved result's digest, or None."""
    failure_id = row.get(NG_FAILURE_ID_KEY)
    if isinstance(failure_id, str) and failure_id:
        return failure_id
    if row.get(keys.NG_FAILURE_CLASS_KEY) is not None:
        return None
    return f"{RESULT_PREDECESSOR_PREFIX}{row_sha256(row)}"


def holds_saved_answer(row: JsonMapping) -> bool:
    """Whether `row` keeps what a model produced: a response with an output item, or a folder of deliverables."""
    response, deliverables = row.get(keys.RESPONSE_KEY), row.get(keys.DELIVERABLES_KEY)
    output = response.get("output") if isinstance(response, Mapping) else None
    return bool((isinstance(output, list) and output) or (isinstance(deliverables, str) and deliverables))


def is_same_answer(row: JsonMapping, other: JsonMapping) -> bool:
    """Whether both rows keep one and the same answer."""
    return holds_saved_answer(row) and all(row.get(key) == other.get(key) for key in _ANSWER_KEYS)


def is_rejudgment_of(failure: JsonMapping, result: JsonMapping) -> bool:
    """Whether `result` scores the saved answer of `failure` anew, without another attempt at the model.

    `failure` is a judge failure, or a saved result; which of those are judged again is the caller's choice.
    """
    return not _reports_failure(result) and _follows(failure, result)


def is_rejudgment_failure_of(failure: JsonMapping, row: JsonMapping) -> bool:
    """Whether `row` says that judging the saved answer of `failure` once more failed again."""
    return _reports_failure(row) and _follows(failure, row)


def is_interruption_failure(row: JsonMapping) -> bool:
    """Whether a failures row spends neither the failure budget nor progress: it says that no result exists."""
    if row.get(keys.NG_OMITTED_ROLLOUT_KEY):
        return True
    killed = row.get(keys.NG_FAILURE_CLASS_KEY) == KILL_SHAPED_FAILURE_CLASS
    return killed and bool(row.get(keys.NG_NO_PERSIST_KEY)) and bool(row.get(RUN_ID_KEY))


def _reports_failure(row: JsonMapping) -> bool:
    return row.get(keys.NG_FAILURE_CLASS_KEY) is not None


def _follows(predecessor: JsonMapping, row: JsonMapping) -> bool:
    named = row.get(REJUDGED_FAILURE_ID_KEY)
    if not isinstance(named, str) or not is_same_attempt(predecessor, row) or not is_same_answer(predecessor, row):
        return False
    return named == rejudge_predecessor_id(predecessor)

"""Whether the ending of an admitted re-judgment is on disk.

Rules:
* Whoever closes an admission and whoever reads it later ask this one check.
* The predecessor is looked for where it was saved: a failure in the sidecar, a result in the results.

Source: collection.md §5.4.7, §21.3 (23).
"""

from collections.abc import Iterable
from pathlib import Path

from rollbook.ledger.rollout_record import read_records
from rollbook.records.json_values import JsonMapping
from rollbook.records.rejudgment import (
    RESULT_PREDECESSOR_PREFIX,
    RejudgeAdmission,
    is_same_answer,
    rejudge_predecessor_id,
    row_sha256,
)
from rollbook.records.row_identity import identity_of_row


def admission_closed_by(
    admission: RejudgeAdmission,
    outcome: JsonMapping,
    identity: str,
    failures_path: Path,
    results_path: Path | None = None,
) -> bool:
    """Whether `outcome`, a row of rollout `identity`, is what `admission` came to.

    Operation, predecessor (id and digest of its row), rollout, attempt, time of admission and the answer all agree.

    Raises:
        LedgerError: a line of the file that holds the predecessor is no row; names file and line.

    """
    if admission.identity != identity or not _repeats(admission, outcome):
        return False
    path = results_path if _is_of_result(admission) else failures_path
    if path is None:
        return False
    rows = (row for row in read_records(path) if _rollout_of(row) == identity)
    return _follows_one_of(admission, outcome, rows)


def open_among(
    admissions: Iterable[RejudgeAdmission], failures_path: Path, results_path: Path
) -> dict[tuple[str, int], RejudgeAdmission]:
    """Return the admissions that no row closes, by rollout and attempt; both files are read once.

    Raises:
        LedgerError: a line of a file is no row; names file and line.

    """
    left = {(one.identity, one.attempt): one for one in admissions}
    if not left:
        return left
    wanted = {identity for identity, _ in left}
    failures, results = (
        [row for row in read_records(path) if _rollout_of(row) in wanted] for path in (failures_path, results_path)
    )
    for outcome in (*failures, *results):
        found = identity_of_row(outcome)
        admission = None if found is None else left.get(found[1:])
        if admission is not None and _repeats(admission, outcome):
            rows = results if _is_of_result(admission) else failures
            if _follows_one_of(admission, outcome, rows):
                del left[admission.identity, admission.attempt]
    return left


def _is_of_result(admission: RejudgeAdmission) -> bool:
    return admission.predecessor_id.startswith(RESULT_PREDECESSOR_PREFIX)


def _follows_one_of(admission: RejudgeAdmission, outcome: JsonMapping, rows: Iterable[JsonMapping]) -> bool:
    return any(_is_predecessor(admission, row) and is_same_answer(row, outcome) for row in rows)


def _repeats(admission: RejudgeAdmission, outcome: JsonMapping) -> bool:
    found = identity_of_row(outcome)
    if found is None or found[1:] != (admission.identity, admission.attempt):
        return False
    return all(outcome.get(key) == value for key, value in admission.links.items())


def _is_predecessor(admission: RejudgeAdmission, row: JsonMapping) -> bool:
    named = rejudge_predecessor_id(row) == admission.predecessor_id
    return named and row_sha256(row) == admission.predecessor_sha256


def _rollout_of(row: JsonMapping) -> str | None:
    found = identity_of_row(row)
    return None if found is None else found[1]

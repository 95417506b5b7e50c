"""Re-judgments under the names that callers know.

Rules:
* Nothing is decided here; the rules are those of `records.rejudgment` and `ledger.rejudgment`.

Source: collection.md §5.4.7; api/rollout_records.txt.
"""

from pathlib import Path

from rollbook.ledger.rejudgment import admission_closed_by
from rollbook.records.json_values import JsonMapping
from rollbook.records.rejudgment import RejudgeAdmission

PendingRejudge = RejudgeAdmission


def rejudgment_admission_closed_by(
    pending: PendingRejudge,
    outcome: JsonMapping,
    identity: str,
    failures_path: Path,
    results_path: Path | None = None,
) -> bool:
    """Whether `outcome`, a row of rollout `identity`, is what the admission `pending` came to.

    Raises:
        LedgerError: a line of the file that holds the predecessor is no row; names file and line.

    """
    return admission_closed_by(pending, outcome, identity, failures_path, results_path)

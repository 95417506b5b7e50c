"""One saved line → what every check says of it.

Rules:
* Whatever a line holds, it comes back examined: a line that is no record is unreadable, and a check that raises is a
  finding of its own.
* Ignored checks do not run, and none runs on a record without a word about what went on inside.
* The verdict is given once copies are known: a finding of theirs counts as any other.

Source: collection.md §7.1-§7.3.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from rollbook.health.checks import BIT, EXECUTION_ERROR, OF_RECORDS, UNREADABLE, Looks, mask_of
from rollbook.health.finding import Finding
from rollbook.health.observed import Observed, UnreadableRecordError, observed
from rollbook.health.record_checks import Result
from rollbook.health.tally import Tally

RAISED: Final = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)
"""What a check raises on evidence that it was not made for."""
_RECORD_BITS: Final = mask_of(check.id for check in OF_RECORDS)
LOOKING: Final = tuple((check.id, check.looks) for check in OF_RECORDS if check.looks is not None)
"""The checks that look at one record, in the order of the table."""
_LOOKING_BITS: Final = mask_of(name for name, _ in LOOKING)
_UNREADABLE_UNOBSERVED: Final = _RECORD_BITS & ~BIT[UNREADABLE]


class Examined(msgspec.Struct, frozen=True):
    """What is known of one line. `task` is None where it names none.

    `is_sound`: the line and its trajectory can be read. `unobserved` has bits of the table of checks. `is_bound`:
    each reference of its turns means exactly one call; `has_success`: one of these calls brought an answer.
    """

    is_line_readable: bool
    is_sound: bool = False
    task: int | None = None
    rollout: int = 0
    stage: int | None = None
    attempt: int = 0
    rollout_id: str | None = None
    findings: tuple[Finding, ...] = ()
    unobserved: int = 0
    is_bound: bool = False
    has_success: bool = False

    @property
    def flagged(self) -> int:
        """The checks that found something."""
        return mask_of(finding.check for finding in self.findings)


def examine(line: bytes, ignored: int, tally: Tally, looks: Sequence[tuple[str, Looks]] = LOOKING) -> Examined:
    """Return what the checks, but for the `ignored` ones, say of `line`, and count it in `tally`."""
    try:
        seen = observed(line)
    except UnreadableRecordError as error:
        return unreadable(str(error), ignored)
    findings, unobserved = _checked(seen, ignored, looks)
    is_bound = has_success = False
    try:
        tally.add(seen)
        if seen.has_evidence:
            is_bound = seen.binding_is_complete
            has_success = any(not seen.calls[place].failed for place in seen.of_turns)
    except RAISED as error:
        findings.append(_raised("summary", error))
    return Examined(
        is_line_readable=True,
        is_sound=seen.fault is None,
        task=seen.task,
        rollout=seen.rollout,
        stage=seen.stage,
        attempt=seen.attempt,
        rollout_id=seen.rollout_id,
        findings=tuple(finding for finding in findings if not BIT[finding.check] & ignored),
        unobserved=unobserved & ~ignored,
        is_bound=is_bound,
        has_success=has_success,
    )


def unreadable(why: str, ignored: int) -> Examined:
    """Return what is said of a line that is no JSON object."""
    findings = () if BIT[UNREADABLE] & ignored else (Finding(UNREADABLE, detail={"error": why[:200]}),)
    return Examined(is_line_readable=False, findings=findings, unobserved=_UNREADABLE_UNOBSERVED & ~ignored)


def not_checked(why: str, ignored: int) -> Examined:
    """Return what is said of a line on which whoever checked it died."""
    detail = {"failed_check": "all", "error_type": why}
    findings = () if BIT[EXECUTION_ERROR] & ignored else (Finding(EXECUTION_ERROR, detail=detail),)
    return Examined(
        is_line_readable=False, findings=findings, unobserved=_RECORD_BITS & ~BIT[EXECUTION_ERROR] & ~ignored
    )


def _checked(seen: Observed, ignored: int, checks: Sequence[tuple[str, Looks]]) -> tuple[list[Finding], int]:
    if seen.fault is not None:
        return [Finding(UNREADABLE, detail={"error": seen.fault[:200]})], _UNREADABLE_UNOBSERVED
    if not seen.has_evidence:
        return [], _LOOKING_BITS
    findings: list[Finding] = []
    unobserved = 0
    for name, looks in checks:
        if BIT[name] & ignored:
            continue
        result = _result(name, looks, seen, findings)
        if result is None:
            unobserved |= BIT[name]
        else:
            findings += [Finding(name, found.locator, found.detail) for found in result]
    return findings, unobserved


def _result(name: str, looks: Looks, seen: Observed, findings: list[Finding]) -> Result:
    """Return what a check gives; one that raises had no evidence, and that it raised is a finding."""
    try:
        return looks(seen)
    except RAISED as error:
        findings.append(_raised(name, error))
        return None


def _raised(name: str, error: BaseException) -> Finding:
    return Finding(EXECUTION_ERROR, detail={"failed_check": name, "error_type": type(error).__name__})

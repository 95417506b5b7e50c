"""When a run is not worth going on with: what its endings say together.

Rules:
* Pure: endings in, in the order in which they were settled, at most one stop out. Nothing that was saved changes.
* A rejected credential or an exhausted quota stops the run at once: every further attempt would end the same way.
* A server stops the run when every answer that it gave so far was against the protocol. One usable answer, a reported
  failure too, and it is trusted for good. What brought no answer (a status, a broken connection) says nothing of it.
* `stop_after_failures` as a count is of failures in a row: a result starts it anew. As a share it is over the last
  `WINDOW` endings, and says nothing before `FEWEST`. Attempts that never ran and rollouts without an ending of their
  own (interrupted, never started) are in neither.

Source: collection.md §6.8; case RC-49.
"""

from collections import Counter, deque
from typing import Final

import msgspec

from rollbook.outcomes.classify import cause_of
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import PROVIDER_CREDENTIALS_REJECTED, PROVIDER_QUOTA_EXHAUSTED
from rollbook.records.outcome import Failed, Masked, Scored, Unscored

WINDOW: Final = 100
FEWEST: Final = 20
_SHOWN: Final = 200


class EarlyStop(msgspec.Struct, frozen=True):
    """Why a run ends early, and whether resuming it may help without anything being mended first."""

    why: str
    resumable: bool


class EarlyStops:
    """What the endings of one session have come to.

    `violations`: answers against the protocol after which a server stops the run, 0 for never. `failures`: a count of
    failures in a row (an int), or a share of the last endings (a float in (0, 1)); None for neither.
    """

    def __init__(self, *, violations: int, failures: float | None) -> None:
        self._violations = violations
        self._failures = failures
        self._unusable: Counter[str] = Counter()
        self._trusted: set[str] = set()
        self._in_a_row = 0
        self._lost: deque[bool] = deque(maxlen=WINDOW)
        self._stopped = False

    def observe(self, server: str, ending: Ending) -> EarlyStop | None:
        """Return why the run stops after `ending`, which `server` brought; None while it goes on, and after a stop."""
        if self._stopped:
            return None
        stop = _provider_stop(server, ending) or self._protocol_stop(server, ending) or self._breaker_stop(ending)
        self._stopped = stop is not None
        return stop

    def _protocol_stop(self, server: str, ending: Ending) -> EarlyStop | None:
        if server in self._trusted:
            return None
        if not ending.unusable:
            if _is_answer(ending):
                self._trusted.add(server)
            return None
        self._unusable[server] += 1
        seen = self._unusable[server]
        if not self._violations or seen < self._violations:
            return None
        return EarlyStop(
            f"environment server {server!r} answered {seen} of {seen} requests with a reply that can be no result; "
            f"the last: {_said(ending)}. Mend the server, then go on with --resume. "
            "+environment_protocol_violation_stop_after=<replies> sets how many are waited for, 0 for no end",
            resumable=True,
        )

    def _breaker_stop(self, ending: Ending) -> EarlyStop | None:
        if self._failures is None or not self._counts(ending):
            return None
        if isinstance(self._failures, int):
            return self._count_stop(self._failures, ending)
        lost, seen = sum(self._lost), len(self._lost)
        if seen < FEWEST or lost < self._failures * seen or not self._lost[-1]:
            return None
        return _breaker(f"{lost} of the last {seen} rollouts failed", ending)

    def _counts(self, ending: Ending) -> bool:
        """Whether `ending` is a failure or a result, which is then counted."""
        outcome = ending.outcome
        failed = isinstance(outcome, Failed)
        if isinstance(outcome, Failed) and outcome.never_ran:
            return False
        if not failed and not isinstance(outcome, Scored | Masked | Unscored):
            return False
        self._in_a_row = self._in_a_row + 1 if failed else 0
        self._lost.append(failed)
        return True

    def _count_stop(self, most: int, ending: Ending) -> EarlyStop | None:
        return _breaker(f"{self._in_a_row} rollout(s) failed in a row", ending) if self._in_a_row >= most else None


def _provider_stop(server: str, ending: Ending) -> EarlyStop | None:
    kinds = _kinds(ending)
    if PROVIDER_CREDENTIALS_REJECTED in kinds:
        found, mend = "rejected the credentials that a rollout used", "Set credentials that it takes"
    elif PROVIDER_QUOTA_EXHAUSTED in kinds:
        found, mend = "said that a quota is used up", "Wait until the quota is set anew, or raise it"
    else:
        return None
    why = f"a provider behind {server!r} {found}: {_said(ending)}. Every further rollout would end the same way. "
    return EarlyStop(f"{why}{mend}, then go on with --resume", resumable=False)


def _kinds(ending: Ending) -> set[str | None]:
    """Return what a failure is named, and each failure that led to it."""
    if not isinstance(ending.outcome, Failed):
        return set()
    caused = ending.report.chain() if ending.report is not None else ()
    return {ending.outcome.kind, *(event.kind for _, event in caused)}


def _is_answer(ending: Ending) -> bool:
    return isinstance(ending.outcome, Scored | Masked | Unscored | Failed) and not ending.run_failed


def _breaker(found: str, ending: Ending) -> EarlyStop:
    why = f"{found}, as +stop_after_failures says; the last: {_said(ending)}. "
    return EarlyStop(f"{why}Mend what they have in common, then go on with --resume", resumable=True)


def _said(ending: Ending) -> str:
    failed = ending.outcome
    if not isinstance(failed, Failed):
        return ""
    told = cause_of(ending) if ending.run_failed else None
    shown = failed.message[:_SHOWN].rstrip(". ")
    return f"{shown} ({told})" if told else f"{failed.kind or failed.failure_class}: {shown}"

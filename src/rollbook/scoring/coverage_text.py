"""What a score covers, in words and as exported numbers.

Rules:
* Never a bare number: every score is printed beside a line that says what share of the plan it speaks for.
* Every planned rollout is named in exactly one part of that line.

Source: collection.md §6.6, §1.12; case RC-71.
"""

from collections.abc import Mapping

import msgspec

from rollbook.records.standing import Coverage


class MetricsCoverage(msgspec.Struct, frozen=True):
    """How many planned rollouts metrics speak for, as the field reports it.

    `routed_by_class` counts the rollouts that failed in this run by failure class; `imputed` is None unless rollouts
    that left nothing are counted as zero.
    """

    expected: int
    scored: int
    imputed: int | None = None
    routed_by_class: Mapping[str, int] = msgspec.field(default_factory=dict)
    failures_file: str = ""

    @property
    def missing(self) -> int:
        """Planned rollouts that the metrics do not speak for."""
        return self.expected - self.scored

    def lines(self) -> tuple[str, ...]:
        """Return the field's lines: none when nothing is missing and nothing was imputed."""
        total = self.expected
        lines: list[str] = []
        if self.missing > 0:
            lines.append(f"Rollouts missing from the score: {self.missing} of {total} materialized{self._routed()}")
            lines.append(f"Metrics cover: {self.scored} of {total} rollouts")
        if self.imputed:
            lines.append(f"Scored as zero because they left no row: {self.imputed} of {total} rollouts")
        return tuple(lines)

    def metrics(self) -> dict[str, int]:
        """Return the exported `coverage/*` numbers."""
        counts = {"coverage/expected": self.expected, "coverage/scored": self.scored, "coverage/missing": self.missing}
        return counts if self.imputed is None else counts | {"coverage/imputed": self.imputed}

    def _routed(self) -> str:
        if not self.routed_by_class:
            return ""
        place = f"; see {self.failures_file}" if self.failures_file else ""
        return f" ({classes_in_words(self.routed_by_class)} routed this run{place})"


def classes_in_words(counts: Mapping[str, int]) -> str:
    """Return failure classes with their counts, for example `2 agent_run_error, 1 judge_failed`."""
    return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()) if count)


def coverage_line(coverage: Coverage) -> str:
    """Return one line that says how many planned rollouts are scored, and what became of the others."""
    return f"Coverage: {standing_in_words(coverage)}"


def standing_in_words(coverage: Coverage) -> str:
    """Return how many rollouts are scored and what became of the others, without a label."""
    others = ", ".join(_others(coverage))
    return f"{coverage.scored} of {coverage.planned} rollouts scored" + (f" ({others})" if others else "")


def _others(coverage: Coverage) -> list[str]:
    classes = classes_in_words(coverage.failed_by_class)
    parts = {
        "masked": coverage.masked,
        "without a reward": coverage.unscored,
        f"failed ({classes})" if classes else "failed": coverage.failed,
        "interrupted": coverage.interrupted,
        "never started": coverage.never_started,
        "in flight": coverage.in_flight,
        "untouched": coverage.untouched,
    }
    return [f"{count} {name}" for name, count in parts.items() if count]

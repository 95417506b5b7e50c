"""Sums over records that a summary tells beside the verdicts: errors of calls, copies of calls, tokens, timeouts.

Rules:
* A sum does not depend on which process counted which records.
* A duration alone is never a timeout; the time of a rollout that has one is split by where it went.

Source: collection.md §7.2, §7.3; case RC-72.
"""

from collections import Counter
from typing import Final

import msgspec

from rollbook.health.observed import Observed

_SPLIT: Final = ("policy_model", "other_models", "tools")


class Tally(msgspec.Struct):
    """What was counted. `used` and `unused`: records that show that a model had a part in them, or that none had."""

    captures: int = 0
    failed_calls: int = 0
    failed_by_status: dict[str, int] = msgspec.field(default_factory=dict)
    with_failed_calls: int = 0
    replayed: int = 0
    with_replayed: int = 0
    prompt: int = 0
    completion: int = 0
    capture_prompt: int = 0
    capture_completion: int = 0
    timeouts: dict[str, int] = msgspec.field(default_factory=dict)
    with_timeouts: int = 0
    microseconds: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(_SPLIT, 0))
    used: int = 0
    unused: int = 0

    def add(self, seen: Observed) -> None:
        """Count one record."""
        if seen.has_evidence:
            self._add_calls(seen)
        usage = seen.usage
        self.prompt += usage.prompt or 0
        self.completion += usage.completion or 0
        used = seen.used_model
        self.used += used is True
        self.unused += used is False
        timeouts = seen.timeouts
        if timeouts:
            self._add_timeouts(seen, timeouts)

    def _add_calls(self, seen: Observed) -> None:
        calls = seen.calls
        if not calls:
            return
        self.captures += 1
        self.capture_prompt += sum(call.prompt or 0 for call in calls)
        self.capture_completion += sum(call.completion or 0 for call in calls)
        failed = Counter(str(call.status_code or call.error or call.state) for call in calls if call.failed)
        self.failed_calls += failed.total()
        self.failed_by_status = dict(Counter(self.failed_by_status) + failed)
        self.with_failed_calls += bool(failed)
        self.replayed += seen.replayed
        self.with_replayed += seen.replayed > 0

    def _add_timeouts(self, seen: Observed, timeouts: list[str]) -> None:
        self.with_timeouts += 1
        self.timeouts = dict(Counter(self.timeouts) + Counter(timeouts))
        policy = seen.row.policy_model if isinstance(seen.row.policy_model, str) else None
        for call in seen.calls:
            where = "policy_model" if policy is None or call.model[1] in {None, policy} else "other_models"
            self.microseconds[where] += round((call.seconds or 0.0) * 1e6)
        for tool in seen.trajectory.tool_calls if seen.trajectory else ():
            self.microseconds["tools"] += round(max(tool.duration_ms or 0, 0) * 1e3)

    def merge(self, other: "Tally") -> None:
        """Add what `other` counted."""
        for name in self.__struct_fields__:
            mine, theirs = getattr(self, name), getattr(other, name)
            if isinstance(mine, dict):
                summed = {key: mine.get(key, 0) + theirs.get(key, 0) for key in {**mine, **theirs}}
                setattr(self, name, summed)
            else:
                setattr(self, name, mine + theirs)

    @property
    def is_without_model(self) -> bool:
        """Whether there are records that would show a model's part, and no record shows one."""
        return self.unused > 0 and self.used == 0

    def as_json(self, ended_on_error: int) -> dict[str, object]:
        """Return it as a summary tells it; `ended_on_error` records ended on a failed call."""
        by_status = dict(sorted(self.failed_by_status.items()))
        return {
            "model_call_errors": {
                "total": self.failed_calls,
                "by_status": by_status,
                "rollouts_affected": self.with_failed_calls,
                "ended_on_error": ended_on_error,
            },
            "duplicated_calls": {"replayed": self.replayed, "rollouts": self.with_replayed},
            "tokens": {
                "prompt": self.prompt,
                "completion": self.completion,
                "capture_prompt": self.capture_prompt,
                "capture_completion": self.capture_completion,
            },
            "timeouts": {
                "rollouts": self.with_timeouts,
                "events": sum(self.timeouts.values()),
                "by_kind": dict(sorted(self.timeouts.items())),
                "seconds": {name: self.microseconds[name] / 1e6 for name in _SPLIT},
            },
        }

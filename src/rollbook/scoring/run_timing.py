"""How a run's rollouts were timed, held against what is healthy where each has a limit of its own in wall-clock time.

Rules:
* Too few or too slow servers lower a score that such a limit shapes: each row says whether this run stayed clear of it.
* It informs and stops nothing. Counts and sums alone are kept, whatever the number of rollouts.
* A duration alone is no timeout: a result that tells of one is, and a failure of that kind.

Source: collection.md §7.4.
"""

import math
from collections.abc import Mapping
from enum import Enum
from typing import Final

import msgspec

from rollbook.records.keys import NG_FAILURE_CLASS_KEY, STATUS_FAILURE_KIND_KEY

TIMEOUT_KINDS: Final = ("timeout_exceeded", "agent_timeout")
"""Failure classes and kinds that say that a limit of time ended a rollout."""
_WIDTHS: Final = (20, 34, 26)


class State(Enum):
    """What is said of a row."""

    OK = "OK"
    WARN = "WARN"
    OPEN = "pending"


class TimingBounds(msgspec.Struct, frozen=True):
    """What is healthy; None leaves a row out.

    `start_min_fraction` of the rollouts start within `start_within_s` seconds and all within `all_started_within_s`;
    `long_rollout_max_fraction` of those that finished took longer than `long_rollout_s` seconds at most, and
    `timed_out_max_fraction` ended by their limit; requests that wait are `max_waiting_ratio` of those that run at most.
    """

    start_within_s: float
    start_min_fraction: float
    all_started_within_s: float | None
    long_rollout_s: float | None
    long_rollout_max_fraction: float
    timed_out_max_fraction: float
    max_waiting_ratio: float | None = None


class TimingRow(msgspec.Struct, frozen=True):
    """One row of the table, its value and its bound in words."""

    name: str
    value: str
    bound: str
    state: State

    def __str__(self) -> str:
        """Return the row as a line."""
        cells = zip((self.name, self.value, self.bound), _WIDTHS, strict=True)
        return " ".join((*(cell.ljust(width) for cell, width in cells), self.state.value))


class RunTiming(msgspec.Struct):
    """The fold over starts, ends and samples of queues of `total` rollouts, from `began` on (monotonic seconds)."""

    total: int
    bounds: TimingBounds
    began: float
    started: int = 0
    started_in_time: int = 0
    last_start: float = 0.0
    finished: int = 0
    long: int = 0
    timed_out: int = 0
    samples: int = 0
    peak: float = 0.0
    _waiting: float = 0.0
    _running: float = 0.0

    def start(self, now: float) -> None:
        """Note that a rollout started at `now`."""
        seconds = now - self.began
        self.started += 1
        self.started_in_time += seconds <= self.bounds.start_within_s
        self.last_start = max(self.last_start, seconds)

    def end(self, seconds: float, *, timed_out: bool) -> None:
        """Note that a rollout finished after `seconds`."""
        self.finished += 1
        self.timed_out += timed_out
        self.long += self.bounds.long_rollout_s is not None and seconds > self.bounds.long_rollout_s

    def ran_into_limit(self) -> None:
        """Note that a rollout, which is counted where it ends, was ended by its limit."""
        self.timed_out += 1

    def queue(self, waiting: float, running: float) -> None:
        """Note how many requests wait and run, over all servers."""
        self.samples += 1
        self._waiting += waiting
        self._running += running
        self.peak = max(self.peak, _ratio(waiting, running))

    def rows(self, now: float) -> list[TimingRow]:
        """Return the table as it is at `now`."""
        found = (
            self._start_coverage(now),
            self._all_started(now),
            self._ended_by_limit(),
            self._long_rollouts(),
            self._server_queue(),
        )
        return [row for row in found if row is not None]

    def _start_coverage(self, now: float) -> TimingRow:
        bounds = self.bounds
        share = self.started_in_time / self.total if self.total else 1.0
        may_rise = now - self.began < bounds.start_within_s and self.started < self.total
        state = State.OK if share >= bounds.start_min_fraction else State.OPEN if may_rise else State.WARN
        value = f"{share:.3f} ({self.started_in_time} of {self.total})"
        return TimingRow(
            "start coverage", value, f">= {bounds.start_min_fraction:g} in {bounds.start_within_s:g} s", state
        )

    def _all_started(self, now: float) -> TimingRow | None:
        limit = self.bounds.all_started_within_s
        if limit is None:
            return None
        is_whole = self.started >= self.total
        passed = self.last_start if is_whole else now - self.began
        state = State.WARN if passed > limit else State.OK if is_whole else State.OPEN
        value = f"{self.last_start:.1f} s" if is_whole else f"{self.started} of {self.total} after {passed:.1f} s"
        return TimingRow("all started", value, f"<= {limit:g} s", state)

    def _ended_by_limit(self) -> TimingRow | None:
        if not self.finished:
            return None
        return self._share("ended by the limit", self.timed_out, self.bounds.timed_out_max_fraction)

    def _long_rollouts(self) -> TimingRow | None:
        if self.bounds.long_rollout_s is None:
            return None
        longer = f" over {self.bounds.long_rollout_s:g} s"
        return self._share("long rollouts", self.long, self.bounds.long_rollout_max_fraction, longer)

    def _share(self, name: str, count: int, most: float, of_what: str = "") -> TimingRow:
        share = count / self.finished if self.finished else 0.0
        value = f"{share:.3f} ({count} of {self.finished}{of_what})"
        return TimingRow(name, value, f"<= {most:g}", State.OK if share <= most else State.WARN)

    def _server_queue(self) -> TimingRow | None:
        most = self.bounds.max_waiting_ratio
        if most is None or not self.samples:
            return None
        ratio = _ratio(self._waiting, self._running)
        value = f"{ratio:.3f} waiting/running, peak {self.peak:.3f}"
        return TimingRow("server queue", value, f"<= {most:g}", State.OK if ratio <= most else State.WARN)


def _ratio(waiting: float, running: float) -> float:
    if running > 0:
        return waiting / running
    return 0.0 if waiting <= 0 else math.inf


def timing_lines(rows: list[TimingRow]) -> list[str]:
    """Return the table as lines, and after it a warning for each row that is outside its bound."""
    warnings = [
        f"WARNING: {row.name}: {row.value}, healthy is {row.bound}; the score may tell of the servers, not of the model"
        for row in rows
        if row.state is State.WARN
    ]
    return ["Run timing", *(f"  {row}" for row in rows), *warnings]


def tells_of_timeout(result: Mapping[str, object]) -> bool:
    """Whether a result, or the row of a failure, says that it ran into a limit of time."""
    events = result.get("timeouts")
    kinds = (result.get(STATUS_FAILURE_KIND_KEY), result.get(NG_FAILURE_CLASS_KEY))
    return bool(isinstance(events, list) and events) or any(kind in TIMEOUT_KINDS for kind in kinds)

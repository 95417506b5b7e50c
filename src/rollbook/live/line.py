"""A snapshot as one line of text.

Rules:
* A mean never stands without the number of rollouts it covers.
* Counts that are zero are left out, except what was finished.

Source: collection.md §3.9.
"""

from typing import Final

from rollbook.live.escape import escaped
from rollbook.live.progress import Snapshot
from rollbook.records.event import Admission

_MINUTE = 60
_HOUR = 3600
_LONGEST_WHY: Final = 100


def line(snapshot: Snapshot) -> str:
    """Return for example `12/40 finished (30%) · mean reward 0.667 over 9 · 1 failed · 8 in flight · 31.2/min`."""
    parts = [
        _finished(snapshot),
        _admission(snapshot),
        _mean(snapshot),
        *_counts(snapshot),
        _again(snapshot),
        *_pace(snapshot),
    ]
    return " · ".join(part for part in parts if part)


def _finished(snapshot: Snapshot) -> str:
    if not snapshot.planned:
        return "preparing"
    return f"{snapshot.finished}/{snapshot.planned} finished ({snapshot.finished / snapshot.planned:.0%})"


def _admission(snapshot: Snapshot) -> str:
    return "" if snapshot.ended or snapshot.admission is Admission.OPEN else snapshot.admission.value


def _again(snapshot: Snapshot) -> str:
    if not snapshot.again:
        return ""
    why = f" ({_cut(snapshot.again_why)})" if snapshot.again_why else ""
    return f"{snapshot.again} to be sent again{why}"


def _cut(why: str) -> str:
    whole = escaped(why)
    return whole if len(whole) <= _LONGEST_WHY else f"{whole[:_LONGEST_WHY]} …"


def _mean(snapshot: Snapshot) -> str:
    if snapshot.mean_reward is None:
        return ""
    return f"mean reward {snapshot.mean_reward:.3f} over {snapshot.scored + snapshot.zeros}"


def _counts(snapshot: Snapshot) -> list[str]:
    named = [
        (snapshot.masked, "masked"),
        (snapshot.unscored, "unscored"),
        (snapshot.failed, "failed"),
        (snapshot.interrupted, "interrupted"),
        (snapshot.never_started, "never started"),
    ]
    flying = [f"{_of_limit(snapshot)} in flight"] if snapshot.in_flight else []
    return [*(f"{count} {name}" for count, name in named if count), *flying]


def _of_limit(snapshot: Snapshot) -> str:
    return f"{snapshot.in_flight}" if snapshot.limit is None else f"{snapshot.in_flight} of {snapshot.limit}"


def _pace(snapshot: Snapshot) -> list[str]:
    rate = [f"{snapshot.per_minute:.1f}/min"] if snapshot.per_minute is not None else []
    if snapshot.ended:
        return [*rate, f"ended after {duration(snapshot.elapsed)}"]
    left = [f"{duration(snapshot.seconds_left)} left"] if snapshot.seconds_left is not None else []
    return [*rate, f"{duration(snapshot.elapsed)} so far", *left]


def duration(seconds: float) -> str:
    """Return `seconds` as a person writes them: `54s`, `3m20s`, `2h05m`."""
    if 0 < seconds < 1:
        return f"{max(seconds, 0.1):.1f}s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m{whole % _MINUTE:02d}s"
    return f"{whole // _HOUR}h{whole % _HOUR // _MINUTE:02d}m"

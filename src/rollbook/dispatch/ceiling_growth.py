"""One server's ceiling: how many rollouts may be in flight there, found by trying.

Rules:
* It doubles while that pays: a round under the new ceiling delivers more a second than the round before it did. Then it
  grows by equal steps as long as those pay. What does not pay is taken back, and the ceiling holds.
* It grows only where it was in use. A round counts as many endings as the ceiling has places, once those have ended
  that were out before it was raised, or that are over it since it was lowered.
* Long rollouts are not waited for. A ceiling that still doubles, was in use for 5 seconds and saw no refusal in them
  doubles on time, up to 256, where fewer have ended than a quarter of a round. Above 256 it gets 64 more every 30
  seconds, until 64 have ended.
* A ceiling that grew on time alone is proved later. Where rollouts take half as long again as the first did, and rounds
  end within 5 minutes, it halves as long as half delivers as much.
* A ceiling that holds is tried every 30 seconds, against what it delivered in them: a quarter up; where that does not
  pay a fifth down next time, kept when it delivers as much; and so on. What pays goes on at once.
* A refusal that is not let pass (`ceiling_cuts`) halves it, once for all that was sent before. Each round sent since
  that ends well then doubles it, up to seven eighths of where it was refused. From there it goes up by a sixteenth
  every 30 seconds, until a round that large is refused no more often than less was. Of halvings without growth between
  them the place of the first is kept.
* It never leaves `floor` to `most`.

Source: the slow start and congestion avoidance of RFC 5681 §3.1, with a rate in place of the window's acknowledgement.
"""

from enum import Enum
from typing import Final

import msgspec

from rollbook.dispatch.ceiling_cuts import Cuts
from rollbook.dispatch.ceiling_round import Round

TIMED_DOUBLING: Final = 5.0
TIMED_MOST: Final = 256
TIMED_STEP: Final = 64
PROBE_EVERY: Final = 30.0
_PROVABLE: Final = 300.0
_SLOWER: Final = 1.5
_FIRST_ENDINGS: Final = 64
_FEWEST: Final = 16
_FEWEST_OF_A_STEP: Final = 96
_FULL: Final = 0.8
_AS_OFTEN: Final = 2.0


class Phase(Enum):
    """What a ceiling is doing."""

    DOUBLING = "doubling"
    ADDING = "adding"
    HOLDING = "holding"
    RECOVERING = "recovering"


class Trial(msgspec.Struct, frozen=True):
    """A ceiling under test: what delivered `rate` before it and was `refused` a share, and whether the test goes up."""

    back_to: int
    rate: float
    refused: float
    up: bool


class Growth:
    """A ceiling that moves. `limit` is what it is now."""

    __slots__ = (
        "_cuts",
        "_first_count",
        "_first_seconds",
        "_full_since",
        "_held_since",
        "_phase",
        "_proven",
        "_round",
        "_step",
        "_trial",
        "_upwards",
        "floor",
        "limit",
        "most",
    )

    def __init__(self, start: int, floor: int, most: int) -> None:
        self.floor, self.most = floor, most
        self.limit = max(floor, min(start, most))
        self._phase = Phase.DOUBLING
        self._round = Round(self.limit)
        self._trial: Trial | None = None
        self._step = 1
        self._upwards = self._proven = True
        self._full_since: float | None = None
        self._held_since = float("-inf")
        self._cuts = Cuts()
        self._first_count, self._first_seconds = 0, 0.0

    def ended(self, seconds: float, now: float, in_flight: int, *, ok: bool) -> None:
        """Count an attempt that ran; `in_flight` with itself."""
        self._round.count(seconds, now, ok=ok, full=in_flight >= self.limit * _FULL)
        self._cuts.ended(now - seconds, ok=ok)
        if self._first_count < _FIRST_ENDINGS:
            self._first_count += 1
            self._first_seconds += seconds

    def refused(self, seconds: float, now: float, in_flight: int, pause: float) -> int:
        """Count an attempt that was turned away for `pause` seconds, and halve for it; `in_flight` with itself.

        Return how many halvings came in a row with nothing good between them, 0 when it is let pass.
        """
        self._full_since = None
        self._round.refused += 1
        if self._cuts.lets_pass(now - seconds, now, in_flight, pause):
            return 0
        self._halve(now, in_flight, 0 if self._trial is None or self._trial.up else self._trial.back_to)
        return self._cuts.in_a_row

    def unreachable(self, began: float) -> None:
        """Count an attempt that never arrived: the time for growing without an ending starts anew."""
        self._full_since = None
        self._cuts.withdrawn(began)

    def withdrawn(self, began: float) -> None:
        """Count an attempt out that was sent at `began` and says nothing of the server."""
        self._cuts.withdrawn(began)

    def shrink(self, now: float, in_flight: int) -> bool:
        """Give back a quarter; whether there was one to give."""
        self._hold(now)
        return self._set(self.limit * 3 // 4, in_flight)

    def bound(self, floor: int, most: int, in_flight: int) -> bool:
        """Stay between these from now on; whether that moved it."""
        self.floor, self.most = floor, most
        return self._set(self.limit, in_flight)

    def tick(self, now: float, in_flight: int, *, may_grow: bool) -> str | None:
        """Look at the ceiling, every second or more often; return why it moved, None when it did not."""
        full = in_flight >= self.limit * _FULL
        self._round.look(full=full)
        if not full:
            self._full_since = None
        elif self._full_since is None:
            self._full_since = now
        if self._phase is Phase.RECOVERING:
            return self._recover(now, in_flight) if may_grow else None
        if self._round.is_over(self._needed) and not self._rests(now):
            return self._judge(now, in_flight, may_grow=may_grow)
        return self._grow_on_time(now, in_flight) if may_grow and self._phase is Phase.DOUBLING else None

    @property
    def _needed(self) -> int:
        return max(self.limit, _FEWEST if self._phase is Phase.DOUBLING else _FEWEST_OF_A_STEP)

    def _rests(self, now: float) -> bool:
        """Whether it holds, and what it delivers meanwhile is still measured."""
        return self._phase is Phase.HOLDING and self._trial is None and now - self._held_since < PROBE_EVERY

    def _halve(self, now: float, in_flight: int, at_least: int) -> bool:
        out = self._cuts.cut(now, in_flight, at_least)
        self._phase = Phase.RECOVERING
        return self._set(max(self.floor, min(self.limit, out) // 2), in_flight)

    def _recover(self, now: float, in_flight: int) -> str | None:
        turned_over = self._cuts.good >= self._cuts.needed(self.limit) and self._round.in_use
        waited = self._full_for(now) >= PROBE_EVERY and in_flight <= self.limit
        if not turned_over and not waited:
            idle = self._cuts.leaves_idle(self.limit) and self._halve(now, in_flight, self.limit)
            return "refused, and in use for less than half of the time" if idle else None
        self._cuts.turned_over()
        if self._set(self._cuts.risen(self.limit), in_flight):
            return "what was sent since it was halved ended well"
        self._hold(now)
        if self._cuts.is_over():
            self._add(self.limit)
        return None

    def _grow_on_time(self, now: float, in_flight: int) -> str | None:
        if self.limit < TIMED_MOST:
            is_due = self._full_for(now) >= TIMED_DOUBLING and self._round.all * 4 < self._needed
            grown = min(self.limit * 2, TIMED_MOST)
        else:
            is_due = self._full_for(now) >= PROBE_EVERY and self._first_count < _FIRST_ENDINGS
            grown = self.limit + TIMED_STEP
        if not is_due or not self._set(grown, in_flight):
            return None
        self._proven = False
        return "in use, and nothing was refused"

    def _judge(self, now: float, in_flight: int, *, may_grow: bool) -> str | None:
        round_, trial = self._round, self._trial
        self._round = Round(1)
        if not round_.in_use:
            return None
        self._trial = None
        if trial is not None and not self._passed(trial, round_):
            return self._step_back(trial, now, in_flight)
        if trial is not None and self._phase is Phase.HOLDING:
            self._go_on(trial)
        if self._is_past_refusals(trial, round_):
            self._cuts.forget()
            self._phase = Phase.DOUBLING
        if not self._proven and self._needs_proof(round_):
            self._hold(now)
            tried = self._test(self.limit // 2, round_, in_flight, "does half deliver as much?")
            self._upwards = self._proven = tried is None
            return tried
        return self._next(round_, now, in_flight, may_grow=may_grow)

    def _is_past_refusals(self, trial: Trial | None, round_: Round) -> bool:
        """Whether what was refused once is worked on by now, but for the share that was refused of less as well."""
        refused_at, usual = self._cuts.refused_at, 0.0 if trial is None else trial.refused
        return refused_at is not None and self.limit >= refused_at and round_.share_refused <= _AS_OFTEN * usual

    def _passed(self, trial: Trial, round_: Round) -> bool:
        if not trial.up:
            return round_.holds(trial.rate)
        return self._cuts.refused_at is not None or round_.pays_over(trial.rate)

    def _step_back(self, trial: Trial, now: float, in_flight: int) -> str | None:
        if self._phase is Phase.DOUBLING and trial.up and self._proven:
            self._add(trial.back_to)
        else:
            self._proven = self._proven or not trial.up
            self._hold(now)
            self._upwards = not trial.up
        moved = self._set(trial.back_to, in_flight)
        reason = "more did not pay" if trial.up else "less delivered less"
        return reason if moved else None

    def _go_on(self, trial: Trial) -> None:
        """Do more of what paid, without a wait."""
        if trial.up and self._cuts.refused_at is None:
            self._add(self.limit)
        elif not trial.up:
            self._held_since = float("-inf")

    def _needs_proof(self, round_: Round) -> bool:
        """Whether half of a ceiling that grew on time may do: more did not pay, or rollouts take longer."""
        if round_.lasted > _PROVABLE:
            self._proven = True
            return False
        return not self._upwards or round_.mean_seconds > _SLOWER * self._first_seconds / self._first_count

    def _next(self, round_: Round, now: float, in_flight: int, *, may_grow: bool) -> str | None:
        match self._phase:
            case Phase.DOUBLING if may_grow:
                return self._test(self.limit * 2, round_, in_flight, "more paid")
            case Phase.ADDING if may_grow:
                return self._test(self.limit + self._step, round_, in_flight, "more paid")
            case Phase.HOLDING if not self._rests(now):
                return self._probe(round_, now, in_flight, may_grow=may_grow)
            case _:
                return None

    def _probe(self, round_: Round, now: float, in_flight: int, *, may_grow: bool) -> str | None:
        self._held_since = now
        if self._upwards:
            step = self.limit // (4 if self._cuts.refused_at is None else 16)
            tried = self._test(self.limit + max(1, step), round_, in_flight, "does more pay?") if may_grow else None
        else:
            tried = self._test(self.limit - max(1, self.limit // 5), round_, in_flight, "does less deliver as much?")
            self._upwards = self._upwards or tried is None
        return tried

    def _test(self, limit: int, round_: Round, in_flight: int, why: str) -> str | None:
        trial = Trial(self.limit, round_.rate, round_.share_refused, up=limit > self.limit)
        if not self._set(limit, in_flight):
            return None
        self._trial = trial
        return why

    def _add(self, limit: int) -> None:
        self._phase = Phase.ADDING
        self._step = max(1, limit // 4)

    def _hold(self, now: float) -> None:
        self._phase = Phase.HOLDING
        self._held_since = now
        self._upwards = True

    def _full_for(self, now: float) -> float:
        return 0.0 if self._full_since is None else now - self._full_since

    def _set(self, limit: int, in_flight: int) -> bool:
        """Move to `limit`, or as near as may be; whether that is a move."""
        bounded = max(self.floor, min(limit, self.most))
        if bounded == self.limit:
            return False
        self._round = Round(in_flight if bounded > self.limit else in_flight - bounded)
        if bounded > self.limit:
            self._cuts.grew()
        self.limit = bounded
        self._trial = None
        self._full_since = None
        return True

"""One run as a comparison sees it: its tasks by what they say, and how every rollout of them stands. Columns, not rows.

Rules:
* A unit is one task under one agent; the rollouts of a unit follow each other, by repeat.
* A rollout is scored, masked, unscored, failed (by class) or missing, by where it stands and by nothing else; a failure
  that its producer marked so counts as zero, here as in every metric.
* A digest of 0 says that nothing is known of what a task says.

Source: collection.md §9.2.
"""

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rollbook.records.disposition import Disposition
from rollbook.records.outcome import Failed, Outcome
from rollbook.records.place import File, Place
from rollbook.records.shared import Shared

SCORED: Final = "scored"
MASKED: Final = "masked"
UNSCORED: Final = "unscored"
MISSING: Final = "missing"
FAILED: Final = "failed"
COUNTED: Final = "counts as zero"
NO_AGENT: Final = "(no agent)"
"""What rollouts are compared under whose rows name no agent."""
_SCORED_STATE: Final = 0
At = tuple[bool, int, int, int]
"""Whether a row is in the results, where nothing else has an answer; its offset, length and line."""
NOWHERE: Final[At] = (False, 0, 0, 0)
_STATES: Final = {
    Disposition.SCORED: SCORED,
    Disposition.MASKED: MASKED,
    Disposition.APPROVED: MASKED,
    Disposition.UNSCORED: UNSCORED,
    Disposition.RETRYABLE: FAILED,
    Disposition.SETTLED: FAILED,
    Disposition.EXHAUSTED: FAILED,
    Disposition.HELD: FAILED,
}


def state_of(disposition: Disposition, outcome: Outcome | None) -> str:
    """Return how a rollout stands, in the words of a comparison; a failure with its class."""
    state = _STATES.get(disposition, MISSING)
    return f"{FAILED} ({outcome.failure_class})" if state == FAILED and isinstance(outcome, Failed) else state


class Said(NamedTuple):
    """What is known of a task: digests of all it says, of its prompt, of its own name; and the tags that it has."""

    content: int = 0
    prompt: int = 0
    name: int = 0
    tags: int = 0


def short(digest: bytes | None) -> int:
    """Return a digest as a number, as columns keep it; 0 of none."""
    return 0 if digest is None else int.from_bytes(digest[:8], "big") or 1


@dataclass(slots=True)
class Side:
    """The columns. `has_plan`: whether it is known what was to be run; else only what left a record is known.

    `is_damaged`: its files cannot be believed.
    """

    label: str
    has_plan: bool = True
    agents: Shared[str] = field(default_factory=Shared)
    states: Shared[str] = field(default_factory=lambda: Shared(SCORED))
    notes: list[str] = field(default_factory=list)
    is_damaged: bool = False
    task: "array[int]" = field(default_factory=lambda: array("q"))
    agent: "array[int]" = field(default_factory=lambda: array("I"))
    starts: "array[int]" = field(default_factory=lambda: array("Q", [0]))
    scored_starts: "array[int]" = field(default_factory=lambda: array("Q", [0]))
    scored: "array[float]" = field(default_factory=lambda: array("d"))
    contents: "array[int]" = field(default_factory=lambda: array("Q"))
    prompts: "array[int]" = field(default_factory=lambda: array("Q"))
    names: "array[int]" = field(default_factory=lambda: array("Q"))
    tags: "array[int]" = field(default_factory=lambda: array("Q"))
    repeat: "array[int]" = field(default_factory=lambda: array("I"))
    state: "array[int]" = field(default_factory=lambda: array("I"))
    with_reward: set[int] = field(default_factory=lambda: {_SCORED_STATE})
    _is_result: "array[int]" = field(default_factory=lambda: array("B"))
    _offset: "array[int]" = field(default_factory=lambda: array("Q"))
    _length: "array[int]" = field(default_factory=lambda: array("I"))
    _line: "array[int]" = field(default_factory=lambda: array("I"))

    def __len__(self) -> int:
        """Return how many units there are."""
        return len(self.task)

    @property
    def rollouts(self) -> int:
        """How many rollouts there are."""
        return len(self.state)

    def add_scored(self, repeat: int, reward: float, at: At = NOWHERE) -> None:
        """Add a scored rollout, whose row lies `at` a place, to the unit that is ended next."""
        self.scored.append(reward)
        self._add(repeat, _SCORED_STATE, at)

    def add_counted(self, repeat: int, failure_class: str, reward: float) -> None:
        """Add a failed rollout that enters every metric with `reward`, which is 0 unless an older version wrote one."""
        self.scored.append(reward)
        state = self.states.number(f"{COUNTED} ({failure_class})")
        self.with_reward.add(state)
        self._add(repeat, state, NOWHERE)

    def add_unscored(self, repeat: int, state: str) -> None:
        """Add a rollout that has no reward to the unit that is ended next."""
        self._add(repeat, self.states.number(state), NOWHERE)

    def _add(self, repeat: int, state: int, at: At) -> None:
        self.repeat.append(repeat)
        self.state.append(state)
        is_result, offset, length, line = at
        self._is_result.append(is_result)
        self._offset.append(offset)
        self._length.append(length)
        self._line.append(line)

    def end_unit(self, task: int, agent: str | None) -> None:
        """Say whose the rollouts are that were added since the last unit; tasks come in rising order."""
        self.task.append(task)
        self.agent.append(self.agents.number(agent or NO_AGENT))
        self.starts.append(len(self.state))
        self.scored_starts.append(len(self.scored))
        for column in (self.contents, self.prompts, self.names, self.tags):
            column.append(0)

    def units_of(self, task: int) -> Iterator[int]:
        """Yield the units of a task."""
        unit = bisect_left(self.task, task)
        while unit < len(self.task) and self.task[unit] == task:
            yield unit
            unit += 1

    def is_known(self, task: int) -> bool:
        """Whether something was said of `task`, or there is no such task."""
        unit = bisect_left(self.task, task)
        there = unit < len(self.task) and self.task[unit] == task
        return not there or bool(self.contents[unit] or self.prompts[unit])

    def say(self, task: int, said: Said) -> None:
        """Note what a task says."""
        for unit in self.units_of(task):
            self.contents[unit], self.prompts[unit] = said.content, said.prompt
            self.names[unit], self.tags[unit] = said.name, said.tags

    def rewards(self, unit: int) -> "array[float]":
        """Return the rewards of `unit`, by repeat: of scored rollouts, and of those that count as zero."""
        return self.scored[self.scored_starts[unit] : self.scored_starts[unit + 1]]

    def scored_count(self, unit: int) -> int:
        """Return how many rollouts of `unit` have a reward."""
        return self.scored_starts[unit + 1] - self.scored_starts[unit]

    def size(self, unit: int) -> int:
        """Return how many rollouts `unit` has."""
        return self.starts[unit + 1] - self.starts[unit]

    def states_of(self, unit: int) -> Sequence[int]:
        """Return the numbers of the states of the rollouts of `unit`, by repeat."""
        return self.state[self.starts[unit] : self.starts[unit + 1]]

    def scored_places(self, unit: int) -> Iterator[tuple[int, float, Place | None]]:
        """Yield (repeat, reward, where the row lies) of each rollout of `unit` that has a reward."""
        rewards = iter(self.rewards(unit))
        for rollout in range(self.starts[unit], self.starts[unit + 1]):
            if self.state[rollout] in self.with_reward:
                yield self.repeat[rollout], next(rewards), self._place(rollout)

    def _place(self, rollout: int) -> Place | None:
        if not self._is_result[rollout]:
            return None
        return Place(File.RESULTS, self._offset[rollout], self._length[rollout], self._line[rollout])

    def units_under(self, agent: str) -> Iterator[int]:
        """Yield the units of one agent."""
        wanted = [number for number, name in enumerate(self.agents) if name == agent]
        return (unit for unit, number in enumerate(self.agent) if number in wanted)


@dataclass(frozen=True, slots=True)
class SideFacts:
    """What a side's part of a comparison comes to.

    `expected` rollouts were to be run; where no plan says how many, as many of every task as of the one that has most.
    `states`: how many rollouts stand how; `counted` of them failed and count as zero. `few` and `many`: the smallest
    and the largest number of a task's rollouts.
    """

    label: str
    has_plan: bool
    tasks: int
    tasks_scored: int
    expected: int
    states: dict[str, int]
    few: int
    many: int
    counted: int = 0
    is_damaged: bool = False

    @property
    def scored(self) -> int:
        """Rollouts whose own reward counts."""
        return self.states.get(SCORED, 0)

    @property
    def measured(self) -> int:
        """Rollouts that have a reward, their own or a zero."""
        return self.scored + self.counted

    @property
    def coverage(self) -> float:
        """The share of rollouts that have a reward; 0 where there are none."""
        return self.measured / self.expected if self.expected else 0.0


def facts_of(side: Side, units: Iterable[int]) -> SideFacts:
    """Return what `units` of `side` come to."""
    sizes: Counter[int] = Counter()
    states: Counter[int] = Counter()
    scored = 0
    for unit in units:
        sizes[side.size(unit)] += 1
        states.update(side.states_of(unit))
        scored += bool(side.scored_count(unit))
    tasks, rollouts, many = sizes.total(), states.total(), max(sizes, default=0)
    expected = rollouts if side.has_plan else tasks * many
    named = {name: states[number] for number, name in enumerate(side.states) if states[number]}
    if expected > rollouts:
        named[MISSING] = named.get(MISSING, 0) + expected - rollouts
    counted = sum(states[number] for number in side.with_reward) - states[_SCORED_STATE]
    few, damaged = min(sizes, default=0), side.is_damaged
    return SideFacts(side.label, side.has_plan, tasks, scored, expected, named, few, many, counted, damaged)

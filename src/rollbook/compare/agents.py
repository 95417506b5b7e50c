"""Which agents of two runs are compared with each other.

Rules:
* Names given for each side win over one name for both; else every agent that all runs have is compared with itself.
* Agents that are left out are named.

Source: collection.md §9.2.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from rollbook.errors import ConfigError


@dataclass(frozen=True, slots=True)
class AgentChoice:
    """What was asked for: one name for every side, or a name for the baseline and one for each candidate."""

    both: str | None = None
    baseline: str | None = None
    candidates: tuple[str, ...] = ()

    def of_candidate(self, place: int) -> str | None:
        """Return the name for the candidate at `place`; a single name is for all of them."""
        if not self.candidates:
            return self.both
        return self.candidates[place] if len(self.candidates) > 1 else self.candidates[0]


@dataclass(frozen=True, slots=True)
class Agents:
    """For each candidate the (baseline's, candidate's) agents that are compared; and those that are left out.

    `lost`: those of the baseline that nobody left out by name, and that a candidate lacks.
    """

    pairs: tuple[tuple[tuple[str, str], ...], ...]
    skipped: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


def compared_agents(choice: AgentChoice, baseline: Iterable[str], candidates: Sequence[Iterable[str]]) -> Agents:
    """Return which agents are compared, of runs that have the agents named.

    Raises:
        ConfigError: a name that its run does not have, not one name for each candidate, or no agent in all runs.

    """
    if len(choice.candidates) > 1 and len(choice.candidates) != len(candidates):
        raise ConfigError(f"--candidate-agents names {len(choice.candidates)} agents, of {len(candidates)} candidates")
    ours = tuple(dict.fromkeys(baseline))
    theirs = [tuple(dict.fromkeys(each)) for each in candidates]
    if choice.both or choice.baseline or choice.candidates:
        return _named(choice, ours, theirs)
    shared = tuple(name for name in ours if all(name in each for each in theirs))
    if not shared:
        others = "; ".join(f"candidate: {_listed(each)}" for each in theirs)
        raise ConfigError(
            f"no agent is in every run (baseline: {_listed(ours)}; {others}); name the agents with --baseline-agent "
            "and --candidate-agents"
        )
    every = dict.fromkeys([*ours, *(name for each in theirs for name in each)])
    skipped = tuple(name for name in every if name not in shared)
    lost = tuple(name for name in ours if name not in shared)
    return Agents(tuple(tuple((name, name) for name in shared) for _ in theirs), skipped, lost)


def _named(choice: AgentChoice, ours: Sequence[str], theirs: Sequence[Sequence[str]]) -> Agents:
    mine = _found(choice.baseline or choice.both, ours, "baseline")
    others = [_found(choice.of_candidate(place), each, "candidate") for place, each in enumerate(theirs)]
    every: Mapping[str, None] = dict.fromkeys([*ours, *(name for each in theirs for name in each)])
    skipped = tuple(name for name in every if name not in {mine, *others})
    return Agents(tuple(((mine, other),) for other in others), skipped)


def _found(name: str | None, there: Sequence[str], side: str) -> str:
    if name is None and len(there) == 1:
        return there[0]
    if name is None or name not in there:
        asked = f"has no agent {name}" if name else "has several agents, and none is named"
        raise ConfigError(f"the {side} {asked}; it has {_listed(there)}")
    return name


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "none"

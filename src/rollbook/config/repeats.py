"""How many rollouts a row asks for: repeats and fan-out, checked alike for settings and for callers.

Rules:
* A value that would plan no rollout, or the same one twice, is refused; None repeats once.

Source: collection.md §2.3, §2.5; case RC-69.
"""

from collections import Counter
from collections.abc import Mapping


def checked_repeats(repeats: object) -> object:
    """Return `repeats`, one number or one for each routing key, and 1 for None.

    Raises:
        ValueError: a number that is not whole, or below 1; names every such key.

    """
    if repeats is None:
        return 1
    given = repeats if isinstance(repeats, Mapping) else {"num_repeats": repeats}
    bad = [f"{key}: {count}" for key, count in given.items() if not _is_count(count)]
    if bad:
        raise ValueError(f"repeats are whole numbers from 1 on, not {', '.join(bad)}")
    return repeats


def checked_fan_out(fan_out: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Return which agents run the rows of each key.

    Raises:
        ValueError: no list, an empty one, one that names no agent, or an agent that is listed twice.

    """
    return {key: _agents_of(key, agents) for key, agents in fan_out.items()}


def _agents_of(key: str, agents: object) -> tuple[str, ...]:
    match agents:
        case []:
            raise ValueError(f"fan_out.{key} is empty; list the agents that are to run its rows")
        case [*listed]:
            return _names(key, listed)
        case _:
            raise ValueError(f"fan_out.{key} is {agents!r}, no list of agents")


def _names(key: str, listed: list[object]) -> tuple[str, ...]:
    names = tuple(agent for agent in listed if isinstance(agent, str) and agent)
    if len(names) < len(listed):
        raise ValueError(f"fan_out.{key} is {listed!r}; it must hold names of agents alone")
    twice = [agent for agent, times in Counter(names).items() if times > 1]
    if twice:
        raise ValueError(f"fan_out.{key} lists {', '.join(twice)} more than once; for repeats use num_repeats")
    return names


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1

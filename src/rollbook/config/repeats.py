"""Which rollouts a row asks for: repeats, seeds, agent map and fan-out, checked alike for settings and for callers.

Rules:
* A value that would plan no rollout, or the same one twice, is refused; None repeats once, and seeds nothing.
* A value of another type is refused, and never taken for what it is in a condition.

Source: collection.md §2.2, §2.3, §2.5, §2.6; case RC-69.
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


def checked_seeds(add_seed: object) -> object:
    """Return `add_seed`, true or false, or one of them for each routing key; False for None.

    Raises:
        ValueError: another value; names every such key.

    """
    given = add_seed if isinstance(add_seed, Mapping) else {"num_repeats_add_seed": add_seed or False}
    bad = [f"{key}: {seeded}" for key, seeded in given.items() if not isinstance(seeded, bool)]
    if bad:
        raise ValueError(f"seeds are added or not, true or false, not {', '.join(bad)}")
    return add_seed or False


def checked_agent_map(agent_map: object) -> Mapping[str, str]:
    """Return the agent that runs the rows of each key.

    Raises:
        ValueError: no mapping, or one to what is no agent's name.

    """
    if not isinstance(agent_map, Mapping):
        raise ValueError(f"agent_map is {agent_map!r}, no mapping of names to agents")  # noqa: TRY004  a setting's value
    for key, agent in agent_map.items():
        if not isinstance(agent, str) or not agent:
            raise ValueError(f"agent_map.{key} is {agent!r}, no name of an agent")
    return agent_map


def checked_fan_out(fan_out: object) -> dict[str, tuple[str, ...]]:
    """Return which agents run the rows of each key.

    Raises:
        ValueError: no mapping to lists, an empty list, one that names no agent, or an agent that is listed twice.

    """
    if not isinstance(fan_out, Mapping):
        raise ValueError(f"fan_out is {fan_out!r}, no mapping of names to lists of agents")  # noqa: TRY004  as above
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

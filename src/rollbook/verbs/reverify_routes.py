"""Which resources server judges an answer again.

Rules:
* The row's source goes first, then the environment server that ran the row, then its agent.
* A configuration without agents and with one resources server takes everything, and says so.
* What cannot be routed is refused by name before anything is sent.

Source: collection.md §9.1.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from omegaconf import DictConfig

from rollbook.config.instances import agents_of
from rollbook.config.missing import view_of
from rollbook.config.names import AGENTS, ENVIRONMENT_SERVERS, RESOURCES_SERVERS
from rollbook.config.tree import Tree, block_of, blocks, ref_name
from rollbook.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Answerer:
    """Whose answer it is, as far as its rows say; rows that say the same go to the same server."""

    source: str | None = None
    environment: str | None = None
    agent: str | None = None

    def __str__(self) -> str:
        """Write down what is known."""
        named = {
            "task_source": self.source,
            "environment server": self.environment,
            "agent": self.agent,
        }
        told = ", ".join(f"{what} `{name}`" for what, name in named.items() if name)
        return told or "no task_source, environment server or agent"


@dataclass(slots=True)
class VerifyRoutes:
    """The resources servers of one configuration; `notes` says what was chosen for the caller."""

    config: DictConfig
    notes: list[str] = field(default_factory=list)
    _tree: Tree = field(init=False)
    _found: dict[Answerer, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._tree = view_of(self.config)

    @property
    def used(self) -> tuple[str, ...]:
        """The servers that anything was routed to."""
        return tuple(sorted(set(self._found.values())))

    def server_for(self, who: Answerer) -> str:
        """Return the resources server that judges answers of `who`.

        Raises:
            ConfigError: none does, as far as the configuration says; names what it has.

        """
        found = self._found.get(who)
        if found is None:
            found = self._found[who] = next(self._candidates(who), None) or self._only_one(who)
        return found

    def is_over_mcp(self, server: str) -> bool:
        """Whether a server's tools are reached over MCP."""
        found = block_of(self._tree, server)
        return bool(found and found[2].get("expose_tools_over_mcp"))

    def _candidates(self, who: Answerer) -> Iterator[str]:
        if who.source is not None and self._is(who.source, RESOURCES_SERVERS):
            yield who.source
        if who.environment is not None and self._is(who.environment, ENVIRONMENT_SERVERS):
            yield from self._of_environment(who.environment)
        if who.agent is not None and self._is(who.agent, AGENTS):
            yield from self._bound_to(who.agent)

    def _of_environment(self, environment: str) -> Iterator[str]:
        yield from self._bound_to(environment)
        bound = {server for agent in agents_of(self.config, environment) for server in self._bound_to(agent)}
        if len(bound) == 1:
            yield from bound

    def _bound_to(self, instance: str) -> Iterator[str]:
        found = block_of(self._tree, instance)
        name = ref_name(found[2].get("resources_server"), RESOURCES_SERVERS) if found is not None else None
        if name is not None:
            yield name

    def _is(self, name: str, server_type: str) -> bool:
        found = block_of(self._tree, name)
        return found is not None and found[0] == server_type

    def _only_one(self, who: Answerer) -> str:
        servers = [name for name, _, _ in blocks(self._tree, RESOURCES_SERVERS)]
        agents = [name for name, _, _ in blocks(self._tree, AGENTS)]
        if len(servers) == 1 and not agents:
            note = f"the configuration names no agent; {servers[0]}, its only resources server, judges everything"
            self.notes += [note] if note not in self.notes else []
            return servers[0]
        raise ConfigError(
            f"no resources server is known for answers of {who}; the configuration has the resources servers: "
            f"{', '.join(servers) or 'none'}, and the agents: {', '.join(agents) or 'none'}. "
            "Give the configuration that the rollouts were collected with"
        )

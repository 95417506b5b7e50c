"""Who is who in a running configuration: which agent a row means, and which environment server runs it.

Rules:
* A row that names its agent is checked; a row that names only a `task_source` is given one.
* Every name at fault is noted once; one error lists them all, before anything is sent.
* A row stamped with an environment server goes there; any other goes to the one server that fronts its agent.
* Verifiers and data sets are asked about the agent that runs a row, whether the row or its server names it.

Source: collection.md §2.8, §2.10, §18, §21.2.
"""

from collections.abc import Callable, Iterable, Iterator

import msgspec
from omegaconf import DictConfig

from rollbook.config.instances import attributed_agent, environment_server_for, implementation_of, model_server_of
from rollbook.config.instances import only_agent as only_agent_of
from rollbook.config.routing import (
    check_agents,
    check_dataset_admits,
    check_pairings,
    check_server_admits,
    check_stamp,
    resolve_task_sources,
)
from rollbook.errors import ConfigError, InputError
from rollbook.plan.rollouts import Destination
from rollbook.plan.targets import name_in
from rollbook.records.json_values import JsonMapping, JsonObject, text_or_none
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY, TASK_SOURCE_KEY
from rollbook.records.source import is_materialized


class _Named(msgspec.Struct, frozen=True):
    """The names that a row brings along; rows that bring the same ones are looked up once."""

    agent: str | None
    server: str | None
    source: str | None
    taskset: str | None


class Directory(msgspec.Struct):
    """The agents and environment servers of one configuration; answers are remembered."""

    config: DictConfig
    _agents: dict[_Named, str | None] = msgspec.field(default_factory=dict)
    _destinations: dict[tuple[str | None, str | None], Destination] = msgspec.field(default_factory=dict)
    _faults: dict[str, ConfigError] = msgspec.field(default_factory=dict)

    @property
    def only_agent(self) -> str | None:
        """The configuration's agent, where there is exactly one."""
        return only_agent_of(self.config)

    def resolved(self, rows: Iterable[JsonObject]) -> Iterator[JsonObject]:
        """Yield `rows` with their agents named.

        Raises:
            ConfigError: names that lead nowhere or do not fit together; all of them, after the last row. What is
                wrong with one name alone is raised as what it is, several as an `InputError`.

        """
        for row in rows:
            named = _names_in(row)
            if named not in self._agents:
                self._agents[named] = self._looked_up(named)
            agent = self._agents[named]
            yield row if agent is None or named.agent is not None else row | {AGENT_REF_KEY: {"name": agent}}
        if len(self._faults) == 1:
            raise next(iter(self._faults.values()))
        if self._faults:
            raise InputError("\n".join(self._faults))

    def find(self, agent: str | None, server: str | None) -> Destination:
        """Return where a row goes.

        Raises:
            ConfigError: nothing fits, or several do.

        """
        if (agent, server) not in self._destinations:
            runs_on = server if server is not None else environment_server_for(self.config, agent or "")
            _, implementation = implementation_of(self.config, runs_on)
            by = agent or attributed_agent(self.config, runs_on)
            model = model_server_of(self.config, by) if by else None
            self._destinations[agent, server] = Destination(runs_on, implementation, model)
        return self._destinations[agent, server]

    def _looked_up(self, named: _Named) -> str | None:
        try:
            agent = self._agent_for(named)
        except ConfigError as error:
            self._faults[str(error)] = error
            return None
        if agent is not None or named.server is not None:
            self._note_first_fault(self._checks(named, agent))
        return agent

    def _agent_for(self, named: _Named) -> str | None:
        if named.agent is not None or named.taskset is not None:
            return named.agent
        if named.server is not None:
            check_stamp(self.config, named.server)
            return attributed_agent(self.config, named.server)
        return resolve_task_sources(self.config, [named.source])[named.source] if named.source else None

    def _checks(self, named: _Named, agent: str | None) -> Iterator[Callable[[], object]]:
        if agent is not None:
            yield lambda: check_agents(self.config, [agent])
            yield lambda: check_pairings(self.config, [(agent, named.source)])
        server, runs_it = named.server, agent
        if server is not None:
            yield lambda: check_stamp(self.config, server, agent, named.source)
            runs_it = agent or attributed_agent(self.config, server)
            yield lambda: check_server_admits(self.config, server, runs_it, named.source)
        if runs_it is not None:
            yield lambda: check_dataset_admits(self.config, runs_it, named.taskset)
        if server is not None or named.taskset is None:
            yield lambda: self.find(agent, server)

    def _note_first_fault(self, checks: Iterable[Callable[[], object]]) -> None:
        try:
            for check in checks:
                check()
        except ConfigError as error:
            self._faults[str(error)] = error


def _names_in(row: JsonMapping) -> _Named:
    task_id = row.get("task_id")
    taskset = task_id.get("taskset") if isinstance(task_id, dict) and is_materialized(row) else None
    return _Named(
        agent=name_in(row.get(AGENT_REF_KEY)),
        server=text_or_none(row.get(NG_ENVIRONMENT_SERVER_KEY)),
        source=text_or_none(row.get(TASK_SOURCE_KEY)),
        taskset=text_or_none(taskset),
    )

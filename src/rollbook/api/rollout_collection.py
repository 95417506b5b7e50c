"""`RolloutCollectionHelper`: collection as the field's own API names it.

Rules:
* Nothing is decided here; each method is a thin face over a room.
* Rows that a caller hands over are never mutated, except where the contract says so (`resolve_task_sources`).

Source: collection.md §11.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from omegaconf import DictConfig

from rollbook.api.evaluation import evaluate
from rollbook.api.request import EvaluationRequest, ServeMode
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.config.parser import get_global_config_dict
from rollbook.config.routing import resolve_task_sources
from rollbook.config.types import BaseServerConfig
from rollbook.errors import InputError
from rollbook.inputs.examples import rows_of
from rollbook.inputs.row_names import faults_in_routing
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import read_lines
from rollbook.plan.directory import Directory
from rollbook.plan.expand import Expansion
from rollbook.plan.options import PlanOptions
from rollbook.plan.targets import name_in
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.records.keys import AGENT_REF_KEY, TASK_SOURCE_KEY
from rollbook.servers.client import ServerClient
from rollbook.verbs.prepare import planned_rows


class RolloutCollectionHelper:
    """Prepares and collects rollouts against servers that are running already."""

    def __init__(self, reuse_server_client: bool = False) -> None:
        self._reuse = reuse_server_client
        self._client: tuple[BaseServerConfig | None, ServerClient] | None = None

    def preprocess_examples(
        self,
        examples: Iterable[dict[str, Any]],
        *,
        agent_map: Mapping[str, str] | None = None,
        fan_out: Mapping[str, list[str]] | None = None,
        num_repeats: int | Mapping[str, int] | None = 1,
        num_repeats_add_seed: bool | Mapping[str, bool] = False,
        global_config_dict: DictConfig | None = None,
        task_ids: Iterable[str | int] | None = None,
    ) -> list[dict[str, Any]]:
        """Return one row per owed rollout, in plan order; `examples` stay as they are.

        With `global_config_dict`, rows that have only a `task_source` are given their agent.

        Raises:
            InputError: rows at fault, all of them; repeats or a fan-out that would lose or double rollouts.

        """
        directory = Directory(global_config_dict) if global_config_dict is not None else None
        options = PlanOptions(
            agent_map=agent_map or {},
            fan_out=fan_out or {},
            repeats=1 if num_repeats is None else num_repeats,
            add_seed=num_repeats_add_seed,
            task_ids=frozenset(map(str, task_ids)) if task_ids is not None else None,
            only_agent=directory.only_agent if directory is not None else None,
        )
        resolve = directory.resolved if directory is not None else iter
        return list(planned_rows(rows_of(examples), Expansion(options), resolve=resolve))

    @staticmethod
    def resolve_task_sources(examples: list[dict[str, Any]], global_config_dict: DictConfig) -> None:
        """Give each row that names only a `task_source` its agent, in place.

        Raises:
            InputError: every source that leads to no agent, or a name that is no text.

        """
        for number, row in enumerate(examples):
            fault = next(faults_in_routing(row), None)
            if fault is not None:
                raise InputError(f"row {number}: {fault}")
        open_rows = [row for row in examples if name_in(row.get(AGENT_REF_KEY)) is None and row.get(TASK_SOURCE_KEY)]
        agents = resolve_task_sources(global_config_dict, [row[TASK_SOURCE_KEY] for row in open_rows])
        for row in open_rows:
            row[AGENT_REF_KEY] = {"name": agents[row[TASK_SOURCE_KEY]]}

    def setup_server_client(self, head_server_config: BaseServerConfig | None = None) -> ServerClient:
        """Return a client of the deployment behind the head server; kept only when this helper reuses its client."""
        if self._reuse and self._client is not None and self._client[0] == head_server_config:
            return self._client[1]
        client = ServerClient.load_from_global_config(head_server_config)
        self._client = (head_server_config, client)
        return client

    async def run_from_config(self, config: RolloutCollectionConfig) -> list[dict[str, Any]]:
        """Collect against running servers, and return the results in (task, rollout) order.

        With `retain_results_in_memory` off the list is empty and the results are on disk alone.

        Raises:
            ConfigError: rows or settings that cannot be run; nothing was sent.
            RunError: a run that ended without what it promised; what was collected is on disk.

        """
        result = await evaluate(EvaluationRequest(config, get_global_config_dict(), ServeMode.NONE))
        if not config.retain_results_in_memory or "rollouts" not in result.files:
            return []
        return saved_results(RunPaths(result.files["rollouts"]))


def saved_results(paths: RunPaths) -> list[dict[str, Any]]:
    """Return the saved results of a run, in (task, rollout) order."""
    rows = [msgspec.json.decode(line, type=dict[str, Any]) for _, line in read_lines(paths.output)]
    return sorted(rows, key=lambda row: (row[TASK_INDEX_KEY_NAME], row[ROLLOUT_INDEX_KEY_NAME]))

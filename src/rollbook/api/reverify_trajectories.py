"""Trajectories of other programs, judged as answers of planned rollouts.

Rules:
* Of a trajectory the response is taken, and nothing else: what was asked is in the planned row.
* What is saved of a judging says which trajectory it was, and how much of it the verifier saw.

Source: collection.md §9.1.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rollbook.errors import ConfigError
from rollbook.inputs.atif import ListedTrajectory, listed_trajectories
from rollbook.inputs.atif_response import response_of
from rollbook.records.identity import RolloutKey
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import RESPONSE_KEY
from rollbook.records.standing import Standings
from rollbook.verbs.reverify_answers import Answers, Kind, SavedResults
from rollbook.verbs.reverify_plan import planned_in

ATIF_PROVENANCE_KEY: Final = "_ng_atif_provenance"


@dataclass(frozen=True, slots=True)
class TrajectoryAnswers:
    """The answers that trajectories hold."""

    listed: dict[RolloutKey, ListedTrajectory]

    def holds(self, key: RolloutKey) -> bool:
        """Whether a trajectory is an answer of `key`."""
        return key in self.listed

    def of(self, key: RolloutKey) -> JsonObject:
        """Return the response."""
        response, _ = self._projected(key)
        return {RESPONSE_KEY: response}

    def who(self, key: RolloutKey) -> tuple[str | None, str | None]:  # noqa: ARG002  the planned row says it
        """Return nobody."""
        return None, None

    def links(self, key: RolloutKey) -> JsonMapping:
        """Return which trajectory it is."""
        one = self.listed[key]
        _, status = self._projected(key)
        provenance = {
            "trajectory_id": one.trajectory_id,
            "session_id": one.session_id,
            "source_sha256": one.sha256,
            "schema_version": one.schema_version,
            "projection_status": status,
        }
        return {ATIF_PROVENANCE_KEY: provenance}

    def __iter__(self) -> Iterator[RolloutKey]:
        """Yield the rollouts."""
        return iter(self.listed)

    def _projected(self, key: RolloutKey) -> tuple[JsonObject, str]:
        one = self.listed[key]
        return response_of(one.read(), str(one.path))


@dataclass(slots=True)
class Trajectories:
    """A list of trajectories, as a source of answers."""

    named: Path
    inputs: Path
    answers: Answers
    listed: Sequence[ListedTrajectory]
    kind: Kind = "trajectories"
    results: SavedResults | None = None
    run_id: str | None = None
    seeds: int = 0
    with_agents: bool = True
    _planned: Standings | None = field(default=None)

    def planned(self) -> Standings:
        """Return a fold of the planned rows."""
        if self._planned is None:
            self._planned = planned_in(self.inputs, with_agents=True)
        return self._planned

    def before(self) -> Standings:
        """Return a fold in which nothing was judged."""
        return Standings()

    def refuse_unjudgeable(self, wanted: frozenset[RolloutKey] | None) -> None:
        """Refuse trajectories among the `wanted` that are no answer."""
        for key in self.answers:
            if wanted is None or key in wanted:
                self.answers.of(key)

    def notes(self) -> Iterator[str]:
        """Yield nothing: each trajectory is listed once."""
        return iter(())

    def refuse_tools(self, servers: Sequence[str]) -> None:
        """Refuse tool calls where tools are reached over MCP: their names there are others.

        Raises:
            ConfigError: there are such; names the server and the first trajectory.

        """
        calling = next((one for one in self.listed if one.has_tool_calls), None)
        if servers and calling is not None:
            raise ConfigError(
                f"{calling.path}: a trajectory with tool calls, and {', '.join(servers)} exposes its tools over MCP "
                "(expose_tools_over_mcp); such trajectories cannot be judged"
            )


def trajectories_of(manifest: Path, inputs: Path) -> Trajectories:
    """Return the trajectories that `manifest` lists. Raises as `listed_trajectories` does."""
    listed = listed_trajectories(manifest)
    return Trajectories(manifest, inputs, TrajectoryAnswers({one.key: one for one in listed}), listed)

"""`RewardProfiler`: how hard each task is, from rows and results that a program holds.

Rules:
* Nothing is decided here: rows and results pass through files, as those of a run do, and are read by the same code.

Source: collection.md §9.4; servers.md §8.11.
"""

import logging
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from rollbook.ledger.paths import (
    RunPaths,
    agent_metrics_path_for,
    repeat_level_metrics_path_for,
    reward_profiling_path_for,
)
from rollbook.records.codec import encode
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.records.keys import MASK_SAMPLE_KEY, RESPONSE_KEY
from rollbook.scoring.rows import number_in
from rollbook.verbs.profile import profile
from rollbook.verbs.profile_run import run_of

_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RewardProfile:
    """The lines of the three files that `gym eval profile` writes: by task, by label, and by label and repeat."""

    group_level_metrics: list[dict[str, Any]]
    agent_level_metrics: list[dict[str, Any]]
    repeat_level_metrics: list[dict[str, Any]]


class RewardProfiler:
    """Profiles results of planned rows."""

    def rollout_info_from_result(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return who a result's rollout is, and every number that a profile takes of it."""
        task, rollout = result.get(TASK_INDEX_KEY_NAME), result.get(ROLLOUT_INDEX_KEY_NAME)
        named = {
            "rollout_id": f"{task}:{rollout}",
            TASK_INDEX_KEY_NAME: task,
            ROLLOUT_INDEX_KEY_NAME: rollout,
        }
        response = result.get(RESPONSE_KEY)
        usage = response.get("usage") if isinstance(response, Mapping) else None
        return named | _numbers(usage if isinstance(usage, Mapping) else {}) | _numbers(result)

    def profile(
        self,
        rows: Iterable[Mapping[str, Any]],
        results: Iterable[Mapping[str, Any]],
        *,
        allow_partial_rollouts: bool = False,
    ) -> RewardProfile:
        """Return the profile of `results`, the saved results of the materialized `rows`.

        Raises:
            ValueError: a row has no result and `allow_partial_rollouts` was not said, a result has no row, or two
                results are of one rollout.
            TypeError: a value is no JSON.

        """
        with tempfile.TemporaryDirectory(prefix="rollbook-profile-") as folder:
            paths = RunPaths(Path(folder) / "rollouts.jsonl")
            _write(paths.materialized_inputs, rows)
            _write(paths.output, results)
            run = run_of(paths.materialized_inputs, paths.output)
            came_to = profile([run], paths.output, allow_partial_rollouts=allow_partial_rollouts)
            for warning in came_to.warnings:
                _LOG.warning("%s", warning)
            tasks = reward_profiling_path_for(paths.output).read_bytes().splitlines()
            return RewardProfile(
                group_level_metrics=[msgspec.json.decode(line) for line in tasks],
                agent_level_metrics=msgspec.json.decode(agent_metrics_path_for(paths.output).read_bytes()),
                repeat_level_metrics=msgspec.json.decode(repeat_level_metrics_path_for(paths.output).read_bytes()),
            )


def _numbers(fields: Mapping[str, Any]) -> dict[str, int | float]:
    shown = {name: value for name, value in fields.items() if not name.startswith("_") and name != MASK_SAMPLE_KEY}
    return {name: number for name, value in shown.items() if (number := number_in(value)) is not None}


def _write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("wb") as file:
        for row in rows:
            file.write(encode(row) + b"\n")

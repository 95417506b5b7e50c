"""What an aggregation over shards is asked, and what it comes to.

Rules:
* Plain values: whoever shows them computes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rollbook.records.coverage import Coverage
from rollbook.records.json_values import JsonObject
from rollbook.scoring.coverage_report import counts
from rollbook.verbs.shard_coverage import GroupReport


@dataclass(frozen=True, slots=True)
class AggregationResult:
    """What came of it: the shards that were read, each group's counts and headline, metrics, files and notes.

    `damaged` are the shards whose files cannot be believed: headlines are withheld then. `metrics` are the entries of
    the metrics file; those that were computed here are without the entries of tasks.
    """

    shards: tuple[Path, ...]
    groups: tuple[GroupReport, ...]
    coverage: Coverage
    files: Mapping[str, Path] = field(default_factory=dict)
    metrics: tuple[JsonObject, ...] = ()
    notes: tuple[str, ...] = ()
    damaged: tuple[Path, ...] = ()

    def to_json(self) -> JsonObject:
        """Return what became of the rollouts, as the coverage report says it."""
        imputed = sum(group.imputed for group in self.groups)
        return {
            "schema_version": 1,
            **counts(self.coverage, imputed),
            "shards": [str(shard) for shard in self.shards],
            "damaged": [str(shard) for shard in self.damaged],
            "groups": [_group(group) for group in self.groups],
        }


def _group(group: GroupReport) -> JsonObject:
    head = {"agent": group.label, "server": group.server}
    return head | counts(group.coverage, group.imputed) | {"headline": group.headline.to_json()}

"""What a call of `run_examples` or `run_outcomes` asks for beside its rows.

Rules:
* A call that is recorded names its rollouts anew and opens its shard before anything is sent.

Source: collection.md §11.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from omegaconf import DictConfig

from rollbook.api.direct_call import Pacing
from rollbook.api.direct_rollouts import Handover
from rollbook.api.direct_rows import DirectRow, RunNaming, direct_rows
from rollbook.api.shard_rows import shard_rows
from rollbook.api.shards import ShardTarget, ShardTerms, open_shard
from rollbook.clock import Clock
from rollbook.plan.directory import Directory
from rollbook.records.json_values import JsonObject


@dataclass(frozen=True, slots=True)
class DirectRequest:
    """When rollouts start, how they are handed over, where they go and where they are recorded.

    `server` is where all rows are sent. With `run`, rows that name a rollout name their run too; `all_named` refuses
    rows that name none. `target` needs both. One attempt is sent `most_sends` times at most.
    """

    pacing: Pacing
    handover: Handover
    server: str | None = None
    run: RunNaming | None = None
    all_named: bool = False
    target: ShardTarget | None = None
    most_sends: int = 1

    def rows(self, examples: Iterable[JsonObject], directory: Directory) -> list[DirectRow]:
        """Return what is sent of each of `examples`.

        Raises:
            InputError: rows that lead nowhere or do not fit, all of them.

        """
        if self.run is not None and self.target is not None:
            examples = shard_rows(examples, self.run.otherwise)
        return direct_rows(examples, directory, server=self.server, run=self.run, all_named=self.all_named)

    def opened(self, rows: Sequence[DirectRow], config: DictConfig, clock: Clock) -> Handover:
        """Return how `rows` are handed over, with their shard opened where they are recorded.

        Raises:
            InputError: rows that cannot be recorded.
            LedgerError: the files of the shard cannot be written, or somebody else works on it.

        """
        if self.run is None or self.target is None:
            return self.handover
        terms = ShardTerms(self.run.otherwise, config, self.handover.route_failures)
        return replace(self.handover, sink=open_shard(self.target, rows, terms, clock))

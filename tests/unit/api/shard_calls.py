"""Recorded calls against the stub, and the files that they leave."""

import json

from omegaconf import OmegaConf

from rollbook.api.direct_rows import RunNaming, direct_rows
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.api.shard_rows import shard_rows
from rollbook.api.shards import ShardTarget, ShardTerms, open_shard
from rollbook.config.types import BaseServerConfig
from rollbook.ledger.shard import shard_paths
from rollbook.plan.directory import Directory
from rollbook.testing.manual_clock import ManualClock
from run_folder import said
from stub import Stub, adding


def planned(count, **options):
    return RolloutCollectionHelper().preprocess_examples(adding(count), **options)


class ShardFolder:
    """A folder of shards; `paths` are the files of the shard `label`."""

    def __init__(self, folder, label="s1"):
        self.folder, self.label = folder, label
        self.paths = shard_paths(folder, label)

    def call(self, stub, examples, *, route_failures_to_sidecar=True, retry_requests=False, **options):
        """Return the iterator of a recorded call."""
        head = BaseServerConfig(host="127.0.0.1", port=stub.port)
        return RolloutCollectionHelper().run_examples(
            examples,
            head,
            route_failures_to_sidecar=route_failures_to_sidecar,
            retry_requests=retry_requests,
            record_output_dir=self.folder,
            record_shard=self.label,
            **options,
        )

    async def collected(self, stub, examples, **options):
        return [await one for one in self.call(stub, examples, **options)]

    def opened(self, examples, run_id="run", config=None, *, record_omitted=False, route_failures=True):
        """Open the shard without sending anything; return its recording and its rows."""
        config = config or OmegaConf.create(Stub().config())
        naming = RunNaming(run_id)
        rows = direct_rows(shard_rows(examples, run_id), Directory(config), run=naming, all_named=True)
        target = ShardTarget(self.paths, record_omitted)
        return open_shard(target, rows, ShardTerms(run_id, config, route_failures), ManualClock()), rows

    def resumed(self, stub, *flags):
        """Resume the shard from the command line."""
        named = [
            f"+input_jsonl_fpath={self.paths.materialized_inputs}",
            f"+output_jsonl_fpath={self.paths.output}",
        ]
        flags = ("--concurrency", "1", "--retry-for", "0", *flags)
        return said(["eval", "run", "--no-serve", "--resume", *named, *flags, *stub.overrides])

    def status(self):
        """Return what `gym eval status` says of the shard."""
        return json.loads(said(["eval", "status", str(self.paths.output), "--json"]).out)

    def told(self):
        """Return the status file."""
        return json.loads(self.paths.batch_status.read_bytes())

    def manifest(self):
        return json.loads(self.paths.manifest.read_bytes())

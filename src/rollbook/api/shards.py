"""Opening a shard: where a direct call is recorded, and the manifest of the run that it is.

Rules:
* A shard is opened with the call: its rows, its manifest and every attempt are on disk before anything is sent.
* The manifest is the one that a resume of the shard computes, so that a resume runs what the shard lacks. Where it
  cannot be computed, or a resume would plan other rollouts, it says why a resume refuses the run.
* Until everything that could go wrong with the rows was looked at, an earlier shard of the label is as it was.

Source: collection.md §11, §21.2 (16).
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from msgspec.structs import replace
from omegaconf import DictConfig

from rollbook.api.arguments import checked_folder
from rollbook.api.direct_errors import DirectCallError
from rollbook.api.direct_rows import DirectRow
from rollbook.api.opening import Terms, fresh_manifest, unidentified_manifest
from rollbook.api.provenance import session_entry
from rollbook.api.shard_recording import ShardJournal, ShardRecording
from rollbook.api.shard_rows import are_numbered_in_order, refuse_unrecordable
from rollbook.clock import Clock
from rollbook.config.attempt_cap import max_rollout_attempts
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.errors import ConfigError, InputError
from rollbook.ledger.ownership import refuse_files_of_others
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.run import Draft, Run
from rollbook.ledger.shard import ShardLock, begin_log, end_without_rows, make_files, shard_paths
from rollbook.records.keys import NG_ENVIRONMENT_SERVER_KEY
from rollbook.records.manifest import Opened, RunManifest

_SESSION: Final = 1
_OTHER_ROLLOUTS: Final = (
    "the rollouts of each task are not numbered 0, 1, … in the order of the shard's rows, so a resume would plan others"
)


@dataclass(frozen=True, slots=True)
class ShardTarget:
    """Where a call is recorded. `record_omitted`: tries that left no result are written, too."""

    paths: RunPaths
    record_omitted: bool = False

    @classmethod
    def of(cls, folder: Path | str | None, label: str | None, *, record_omitted: bool = False) -> "ShardTarget | None":
        """Return what the arguments of a call say, or None where they say nothing.

        Raises:
            DirectCallError: one is missing, or the label is none.

        """
        given = {
            "record_output_dir": folder is not None,
            "record_shard": label is not None,
            "record_omitted_rollouts": record_omitted,
        }
        if not any(given.values()):
            return None
        if folder is None or label is None:
            named = ", ".join(name for name, is_given in given.items() if is_given)
            raise DirectCallError(f"{named}: a call is recorded with both record_output_dir and record_shard")
        try:
            return cls(shard_paths(checked_folder(folder), label), record_omitted)
        except InputError as error:
            raise DirectCallError(f"record_shard: {error}") from error


@dataclass(frozen=True, slots=True)
class ShardTerms:
    """What a shard says of its run: its name, and the configuration of the deployment that it is sent to."""

    run_id: str
    config: DictConfig
    route_failures: bool


def open_shard(target: ShardTarget, rows: Sequence[DirectRow], terms: ShardTerms, clock: Clock) -> ShardRecording:
    """Open the shard for `rows`, in the place of what an earlier call wrote under its label.

    Raises:
        InputError: rows that cannot be told apart; the earlier shard is as it was.
        LedgerError: somebody else works on the shard, or the disk refuses it.

    """
    refuse_unrecordable(rows)
    paths = target.paths
    run, lock = Run(paths, clock), ShardLock(paths, now=clock.now)
    run.refuse_what_is_no_file()
    refuse_files_of_others(paths.output, named_by="record_shard")
    run.make_folder()
    with lock.opening() as lock_file:
        run.sweep()
        with run.drafted(row.row for row in rows) as draft:
            manifest = _manifest(draft, rows, terms, clock)
            lock.take(lock_file)
            draft.commit(manifest)
        opened = Opened(_SESSION, manifest.run_id, manifest.created_at, (0, 0))
        begin_log(paths, opened, [(row.rollout.key, row.attempt) for row in rows])
        make_files(paths)
        if not rows:
            end_without_rows(paths, manifest.created_at)
    journal = ShardJournal(paths, manifest, lock, clock, target.record_omitted)
    return ShardRecording(journal, rows, route_failures=terms.route_failures)


def _manifest(draft: Draft, rows: Sequence[DirectRow], terms: ShardTerms, clock: Clock) -> RunManifest:
    """Return the manifest that a resume of the shard computes, with the shard's own rows as its input."""
    plan, materialized = draft.digest, draft.paths.materialized_inputs
    settings = RolloutCollectionConfig(
        input_jsonl_fpath=str(materialized), output_jsonl_fpath=str(draft.paths.output), resume_from_cache=True
    )
    held = {"input_jsonl_fpath": plan.sha256}
    same = Terms(settings, terms.config, max_rollout_attempts(os.environ), held)
    names = dict.fromkeys(_names(row) for row in rows)
    not_resumable = None if are_numbered_in_order(rows) else _OTHER_ROLLOUTS
    try:
        manifest = fresh_manifest(same, plan, names, clock)
    except ConfigError as error:
        not_resumable = f"no identity could be taken of the deployment's configuration: {error}"
        manifest = unidentified_manifest(same, plan, clock)
    own = {
        "run_id": terms.run_id,
        "output": draft.paths.output.name,
        "sessions": (session_entry(_SESSION, (), clock),),
        "not_resumable": not_resumable,
    }
    return replace(manifest, **own)


def _names(row: DirectRow) -> tuple[str | None, str | None]:
    server = row.row.get(NG_ENVIRONMENT_SERVER_KEY)
    return row.rollout.agent, server if isinstance(server, str) else None

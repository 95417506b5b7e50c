"""Several runs → the files of one: results, failures that stand, the plan, the log of attempts and a manifest.

Rules:
* Rows are copied byte for byte, by task and repeat; of a rollout with a result its failures are left out, and of one
  that several shards failed on, those of the shard whose failure stands.
* The manifest says `merged`: records name the runs that they are of, and a resume refuses the whole.
* What is no one run is none: where two servers number their tasks alike, a result is in no plan, or a shard is damaged,
  results alone are written, and it is said why.
* The files appear whole, the manifest first: whatever lies there afterwards may be merged anew.

Source: collection.md §6.2, §1.8.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from heapq import merge
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Final

import msgspec

from rollbook.ledger.digests import HashedFile
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.whole_file import WholeFile, made_aside
from rollbook.records.columns import unpacked_key
from rollbook.records.manifest import (
    Closed,
    MergedShard,
    Opened,
    PlanDigest,
    Reserved,
    RunManifest,
    Stopped,
    log_line,
    manifest_text,
)
from rollbook.records.outcome import Failed, NeverStarted, Result
from rollbook.records.place import File
from rollbook.records.standing import Standing
from rollbook.records.table import FILE_NUMBERS, NO_ROW
from rollbook.verbs.merged_plan import PlanIndex, holds_all, known_manifest, merged_lines, plan_index
from rollbook.verbs.placed_rows import PlacedRows
from rollbook.verbs.shard_groups import MetricsGroup, Shard, of_group

MERGED: Final = "merged"
"""How the one session of a merged run ended."""

_AT_ONCE: Final = 3000
_FAILURES: Final = FILE_NUMBERS[File.FAILURES]
_NOT_RESUMABLE: Final = "it was merged of other runs by gym eval aggregate; resume those, and aggregate them again"
_ALIKE: Final = (
    "servers of the shards number their tasks alike, so the merged rows are no run of one plan: gym eval status and "
    "compare read the shards"
)
_DAMAGED: Final = (
    "files of shards are damaged, so the merged rows are written without plan and manifest, and are no run"
)
_PLANLESS: Final = (
    "results are in no plan that lies beside a shard, so the merged rows have none, and nothing tells what is missing "
    "of them; --materialized-inputs names a plan of all shards"
)


@dataclass(frozen=True, slots=True)
class Merged:
    """How many results were merged, whether they are a run with plan and manifest, and what is to be told."""

    rows: int
    is_run: bool
    notes: tuple[str, ...] = ()


def is_merged(paths: RunPaths) -> bool:
    """Whether what lies at `paths` was merged of other runs, as its manifest says."""
    manifest = known_manifest(paths)
    return manifest is not None and bool(manifest.merged)


def without_merged(outputs: Sequence[Path]) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """Return the outputs that are to be read, and what is to be told of the others.

    What was merged of some of the others holds what they hold: it is passed over.
    """
    known = {output: known_manifest(RunPaths(output)) for output in outputs}
    names = {
        MergedShard(name=output.name, run_id=manifest.run_id if manifest else None)
        for output, manifest in known.items()
    }
    kept, notes = [], []
    for output, manifest in known.items():
        own = [one for one in (manifest.merged if manifest else ()) if one in names]
        if own:
            notes.append(f"{output} was merged of {own[0].name} and others that are named as well, and is passed over")
        else:
            kept.append(output)
    return tuple(kept), tuple(notes)


def write_merged(
    output: RunPaths,
    groups: Sequence[MetricsGroup],
    shards: Sequence[Shard],
    lines: Sequence[PlacedRows | None],
    at: str,
) -> Merged:
    """Write what stands of `shards`, grouped and open as `lines`, as the run at `output`; `at` is the time now.

    Raises:
        OSError: something cannot be read, or the disk does not take it.

    """
    with ExitStack() as holding:
        files = _Files(holding, output)
        merging = _Merging(groups, shards, lines, files)
        merging.results()
        plans = [plan_index(shard.paths) for shard in shards]
        why = merging.why_no_run(plans)
        if why is None:
            merging.failures(holding)
            merging.plan(plans, holding)
            merging.describe(at)
        elif is_merged(output):
            files.forget()
        files.place()
    return Merged(merging.rows, why is None, () if why is None else (why,))


@dataclass(slots=True)
class _Files:
    """The files in the making, of which none is there before all of them are made."""

    holding: ExitStack
    output: RunPaths
    making: dict[str, WholeFile] = field(default_factory=dict)

    def __getitem__(self, name: str) -> WholeFile:
        """Return the file that `RunPaths` calls `name`."""
        if name not in self.making:
            self.making[name] = self.holding.enter_context(made_aside(getattr(self.output, name)))
        return self.making[name]

    def forget(self) -> None:
        """Remove what an earlier merging wrote besides results."""
        for path in (self.output.materialized_inputs, self.output.failures, self.output.manifest_log):
            path.unlink(missing_ok=True)
        self.output.manifest.unlink(missing_ok=True)

    def place(self) -> None:
        """Put all of them in place, the manifest first."""
        for file in self.making.values():
            file.seal()
        for _, file in sorted(self.making.items(), key=lambda item: item[0] != "manifest"):
            file.place()


class _Merging:
    """One merging."""

    def __init__(
        self,
        groups: Sequence[MetricsGroup],
        shards: Sequence[Shard],
        lines: Sequence[PlacedRows | None],
        files: _Files,
    ) -> None:
        self._groups = groups
        self._shards = shards
        self._lines = lines
        self._files = files
        self._digest = PlanDigest(sha256=hashlib.sha256().hexdigest(), bytes=0, rollouts=0)
        self._sizes = {File.RESULTS: 0, File.FAILURES: 0}
        self._reserved: list[int] = []
        self._log: list[bytes] = []
        self.rows = 0

    def results(self) -> None:
        """Write the results that stand."""
        write, size, reserve = self._files["output"].file.write, 0, self._reserve_number
        read = [None if lines is None else lines.at for lines in self._lines]
        tables = [shard.standings.table for shard in self._shards]
        named = [[run is not None for run, _, _ in table.sources] for table in tables]
        for key, shard, row in self._standing():
            table, at = tables[shard], read[shard]
            if at is not None:
                size += write(at(table.offsets[row], table.lengths[row]))
                self.rows += 1
                if named[shard][table.origins[row]]:
                    reserve(key, table.attempts[row])
        self._sizes[File.RESULTS] = size

    def _standing(self) -> Iterator[tuple[int, int, int]]:
        """Yield (packed key, shard, row) of the results that stand, in order."""
        return of_group(self._groups[0]) if len(self._groups) == 1 else merge(*map(of_group, self._groups))

    def why_no_run(self, plans: Sequence[PlanIndex]) -> str | None:
        """Return why what is merged is no run, None where it is one."""
        if any(shard.is_damaged for shard in self._shards):
            return _DAMAGED
        named = merge(*(_distinct(merge(group.keys, group.planned)) for group in self._groups))
        if len(self._groups) > 1 and any(first == second for first, second in pairwise(named)):
            return _ALIKE
        recorded = _distinct(
            merge(*(group.keys for group in self._groups), *(_failing(shard) for shard in self._shards))
        )
        return None if holds_all(plans, recorded) else _PLANLESS

    def failures(self, holding: ExitStack) -> None:
        """Write the failures of rollouts that have no result, each rollout's in the order in which they came."""
        write = self._files["failures"].file.write
        lines = [_failures_of(shard, holding) for shard in self._shards]
        for key, number in self._deciding():
            standings, rows = self._shards[number].standings, lines[number]
            table, seat = standings.table, standings.columns.seats.get(key)
            if seat is None:
                continue
            for row in reversed([*table.chain(standings.columns.last[seat])]):
                if rows is not None and table.files[row] == _FAILURES:
                    self._sizes[File.FAILURES] += write(rows.at(table.offsets[row], table.lengths[row]))
                    self._reserve(number, key, row)
            for attempt in standings.columns.attempts.lost(seat):
                self._reserve_number(key, attempt)

    def _deciding(self) -> Iterator[tuple[int, int]]:
        """Yield the packed key of each rollout that has records and no result, and the shard that speaks for it."""
        resulted = _distinct(key for key, _, _ in self._standing())
        result = next(resulted, None)
        failing = merge(*(_numbered(shard, number) for number, shard in enumerate(self._shards)))
        for key, found in groupby(failing, key=itemgetter(0)):
            while result is not None and result < key:
                result = next(resulted, None)
            if result != key:
                yield key, max((number for _, number in found), key=lambda number: (self._rank(number, key), number))

    def _rank(self, number: int, key: int) -> int:
        """Return how much a shard's word on a rollout weighs: a failure more than what is none."""
        shard = self._shards[number]
        found: Standing = shard.standings.standing(unpacked_key(key), shard.rules)
        if found.record is None:
            return 0
        return 2 if isinstance(found.record.outcome, Failed) else 1

    def plan(self, plans: Sequence[PlanIndex], holding: ExitStack) -> None:
        """Write the rows of all plans."""
        hashed, rollouts = HashedFile(self._files["materialized_inputs"].file), 0
        for line in merged_lines(plans, self._standing(), holding):
            hashed.write(line)
            rollouts += 1
        self._digest = PlanDigest(sha256=hashed.sha256, bytes=hashed.size, rollouts=rollouts)

    def describe(self, at: str) -> None:
        """Write the manifest and the log of attempts."""
        shards = tuple(sorted(map(_named, self._shards), key=lambda shard: (shard.name, shard.run_id or "")))
        manifest = self._manifest(shards, at)
        sizes = self._sizes[File.RESULTS], self._sizes[File.FAILURES]
        self._tell_reserved()
        write = self._files["manifest_log"].file.write
        write(log_line(Opened(1, manifest.run_id, manifest.created_at, (0, 0))))
        for line in self._log:
            write(line)
        why = self._why_never_sent()
        if why is not None:
            write(log_line(Stopped(why)))
        write(log_line(Closed(MERGED, at, sizes)))
        self._files["manifest"].file.write(manifest_text(manifest))

    def _why_never_sent(self) -> str | None:
        """Return why nothing is known of some rollouts, None where a shard has such and does not say why."""
        stopped = [shard.standings.stop_reason for shard in self._shards if shard.standings.stop_reason is not None]
        if not stopped or any(shard.standings.coverage(rules=shard.rules).untouched for shard in self._shards):
            return None
        return "; ".join(dict.fromkeys(stopped))

    def _manifest(self, shards: tuple[MergedShard, ...], at: str) -> RunManifest:
        told = [[(shard.name, shard.run_id) for shard in shards], self._digest.sha256, *self._sizes.values()]
        rules = [shard.rules for shard in self._shards]
        return RunManifest(
            run_id=hashlib.sha256(msgspec.json.encode(told)).hexdigest()[:32],
            created_at=at,
            output=self._files.output.output.name,
            plan=self._digest,
            max_rollout_attempts=max(rule.cap for rule in rules),
            retry_terminal_timeouts=any(rule.retry_terminal_timeouts for rule in rules),
            group_scored=all(rule.group_scored for rule in rules),
            rerun_masked=frozenset().union(*(rule.rerun_masked for rule in rules)),
            released=frozenset().union(*(rule.released for rule in rules)),
            not_resumable=_NOT_RESUMABLE,
            merged=shards,
        )

    def _reserve(self, shard: int, key: int, row: int) -> None:
        """Note that the attempt of a row was handed out: of a run that names itself, each was."""
        table = self._shards[shard].standings.table
        if table.run_id(row) is not None and not isinstance(table.shape(row), NeverStarted):
            self._reserve_number(key, table.attempt(row))

    def _reserve_number(self, key: int, attempt: int) -> None:
        rollout = unpacked_key(key)
        self._reserved += rollout.task, rollout.rollout, attempt
        if len(self._reserved) >= _AT_ONCE:
            self._tell_reserved()

    def _tell_reserved(self) -> None:
        if self._reserved:
            self._log.append(log_line(Reserved(self._reserved, (0, 0))))
            self._reserved = []


def _failures_of(shard: Shard, holding: ExitStack) -> PlacedRows | None:
    path = shard.paths.failures
    return holding.enter_context(PlacedRows(path)) if path.is_file() else None


def _failing(shard: Shard) -> Iterator[int]:
    """Yield the packed key of each rollout of which something is known, and no result, in order."""
    standings = shard.standings
    results = [isinstance(kind, Result) for kind in standings.kinds_of_ending]
    rows, kinds, attempts = standings.columns.row, standings.table.kinds, standings.columns.attempts
    for key, seat in standings.in_order():
        row = rows[seat]
        if not results[kinds[row]] if row != NO_ROW else attempts.open_attempt(seat) is not None:
            yield key


def _numbered(shard: Shard, number: int) -> Iterator[tuple[int, int]]:
    return ((key, number) for key in _failing(shard))


def _distinct(ordered: Iterable[int]) -> Iterator[int]:
    return (key for key, _ in groupby(ordered))


def _named(shard: Shard) -> MergedShard:
    manifest = known_manifest(shard.paths)
    names = [name for name in shard.standings.table.run_ids() if name is not None]
    run_id = manifest.run_id if manifest else names[0] if len(names) == 1 else None
    return MergedShard(name=shard.output.name, run_id=run_id)

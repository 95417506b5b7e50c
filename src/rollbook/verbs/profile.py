"""`gym eval profile`: saved results → how hard each task is, in one pass, and the tasks that are worth keeping.

Rules:
* Rollouts of all runs come in one order, by task and repeat; rows are read where they lie and none is kept.
* Profiles are by task, and by task and label where a task ran under several labels.
* Nothing is written unless everything was read; what is planned and has no result is refused, or counted.

Source: collection.md §1.2, §6.3, §6.4, §9.4; cases RC-74, RC-76, RC-77, RC-81, RC-82.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import compress, count, islice
from operator import ne
from pathlib import Path
from typing import Final

import msgspec

from rollbook.errors import LedgerError
from rollbook.ledger.derived import refuse_over_runs
from rollbook.ledger.paths import agent_metrics_path_for, repeat_level_metrics_path_for, reward_profiling_path_for
from rollbook.ledger.places import refuse_no_file, refuse_no_folder
from rollbook.ledger.whole_file import WholeFile, made_aside
from rollbook.records.columns import unpacked_key
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import AGENT_REF_KEY
from rollbook.records.reading import UNREADABLE
from rollbook.scoring.profile import Kind, LabelProfile, Task, UnreadableRowError
from rollbook.scoring.profile_filter import PASS, names_in, parsed
from rollbook.scoring.profile_rates import SHOWN_KS
from rollbook.scoring.profile_totals import Kept, LabelTotals, Profile
from rollbook.scoring.repeats import unequal
from rollbook.verbs.output_file import output_file
from rollbook.verbs.profile_blocks import Block, merged
from rollbook.verbs.profile_entries import Entries
from rollbook.verbs.profile_rows import RowReader
from rollbook.verbs.profile_run import ProfiledRun, ProfileError, Seen, labels_of
from rollbook.verbs.profile_zeros import ZeroRows

_NAMED: Final = 5


def profile(
    runs: Sequence[ProfiledRun],
    output: Path,
    *,
    keep: str | None = None,
    export: Path | None = None,
    overwrite: bool = False,
    allow_partial_rollouts: bool = False,
) -> Profile:
    """Profile `runs` into the files beside `output`, and return what it came to.

    `keep` is a condition on tasks; the source rows of those for which it holds go to `export`, which replaces an
    earlier file with `overwrite` alone; a profile is made of the run at any time, and replaces an earlier one.

    Raises:
        FilterError: `keep` is no condition.
        ProfileError: results are missing, there twice, or of no input.
        LedgerError: a row cannot be read, or what is written would take the place of a run's file, or of the profile.
        OutputExistsError: `export` is there already.

    """
    kept = None if keep is None else Kept(keep, parsed(keep))
    refuse_no_folder(output.parent)
    if export is not None:
        refuse_no_file(export)
    _refuse_over_runs(runs, output, export)
    if export is not None:
        output_file(export, replaces=overwrite)
    if export is not None and any(run.plan is None for run in runs):
        raise ProfileError(f"{export}: a task's row is in the materialized inputs, and they are not there")
    for run in runs:
        run.refuse_doubles()
    if not allow_partial_rollouts:
        _refuse_missing(runs)
    with ExitStack() as holding:
        profiling = _Profiling(runs, kept, output, export, holding)
        profiling.take(merged(runs))
        return profiling.written()


def _refuse_over_runs(runs: Iterable[ProfiledRun], output: Path, export: Path | None) -> None:
    sources = [path for run in runs for path in (*run.paths.every_file, run.plan) if path is not None]
    beside = _written_beside(output).values()
    for path in (*beside, *((export,) if export is not None else ())):
        refuse_over_runs(path, sources)
    if export is not None and export.resolve() in {path.resolve() for path in beside}:
        raise LedgerError(f"{export}: the profile itself goes there; give another name for the tasks that are kept")


def _written_beside(output: Path) -> dict[str, Path]:
    return {
        "tasks": reward_profiling_path_for(output),
        "agents": agent_metrics_path_for(output),
        "repeats": repeat_level_metrics_path_for(output),
    }


def _refuse_missing(runs: Iterable[ProfiledRun]) -> None:
    missing = sum(run.missing() for run in runs)
    if missing:
        planned = sum(1 for run in runs for _ in run.rollouts())
        without = (seen for run in runs for seen in run.rollouts() if seen.kind is Kind.NO_RESULT)
        named = [str(unpacked_key(seen.number)) for seen in islice(without, _NAMED)]
        listed = ", ".join(named) + (", …" if missing > _NAMED else "")
        raise ProfileError(
            f"{missing} of {planned} planned rollouts have no result ({listed}); finish the run, or profile what is "
            "there with --allow-partial-rollouts"
        )


class _Profiling:
    """One pass over the rollouts, and what comes of it."""

    def __init__(
        self, runs: Sequence[ProfiledRun], kept: Kept | None, output: Path, export: Path | None, holding: ExitStack
    ) -> None:
        self._runs = runs
        self._kept = kept
        self._labels = labels_of(runs)
        self._reader = RowReader(holding)
        self._zeros = ZeroRows(runs, self._labels, self._reader, holding)
        self._paths = _written_beside(output) | ({"kept": export} if export is not None else {})
        self._making = {name: holding.enter_context(made_aside(path)) for name, path in self._paths.items()}
        self._entries = Entries(self._making["tasks"].file, self._reader, several=len(set(self._labels.values())) > 1)
        self._groups: dict[str | None, _Group] = {}
        self._active: list[_Group] = []
        self._last_task = -1
        self._last_seen: tuple[int, str | None, ProfiledRun] = (-1, None, runs[0])
        self._other_ks = sorted(_ks_of(kept) - set(SHOWN_KS))

    def take(self, rollouts: Iterable[Block | Iterable[Seen]]) -> None:
        """Take all rollouts in.

        Raises:
            ProfileError: one is there twice.
            LedgerError: a row cannot be read.

        """
        there = [run for run in self._runs if run.paths.output.exists()]
        self._line = {id(run): self._reader.results(run) for run in there}
        lines = {id(run): self._reader.results_in(run) for run in there}
        try:
            for part in rollouts:
                if isinstance(part, Block):
                    self._take_block(part, lines[id(part.run)](part.rows))
                else:
                    for seen in part:
                        self._take_one(seen)
        except UnreadableRowError as error:
            raise _unreadable(error) from None
        self._end_task()

    def _take_block(self, block: Block, lines: Iterator[bytes]) -> None:
        """Take scored rollouts in, task by task."""
        tasks, rewards, run = block.tasks, block.rewards, block.run
        starts = [0, *compress(count(1), map(ne, tasks, tasks[1:]))]
        label = self._labels[block.pair]
        for start, stop in zip(starts, [*starts[1:], len(tasks)], strict=True):
            task = tasks[start]
            self._begin(task, label).add_scored(task, run, rewards[start:stop], list(islice(lines, stop - start)))
        self._last_seen = (-1, None, run)

    def _take_one(self, seen: Seen) -> None:
        number, run, pair, kind, reward, row, _ = seen
        label = self._labels[pair]
        last_number, last_label, last_run = self._last_seen
        if number == last_number and label == last_label:
            raise _twice(number, run, last_run)
        self._last_seen = (number, label, run)
        adding = self._begin(seen.task, label)
        try:
            if kind is Kind.ZERO:
                text = self._zeros.next(run, label)
            else:
                text = b"" if kind is Kind.NO_RESULT else self._line[id(run)](row)
            adding.add(seen.task, run, kind, reward, text)
        except UNREADABLE as error:
            raise LedgerError(f"{run.paths.output}: rollout {unpacked_key(number)}: {error}") from None

    def _begin(self, task: int, label: str | None) -> LabelProfile[ProfiledRun]:
        """Return what the next rollouts are added to, which are of `task`."""
        if task != self._last_task:
            self._end_task()
            self._last_task = task
        group = self._groups.get(label) or self._group(label)
        if not group.is_active:
            group.is_active = True
            self._active.append(group)
        return group.profile

    def _group(self, label: str | None) -> "_Group":
        group = self._groups[label] = _Group(label, self._other_ks, self._entries, self._entries.taking(label))
        return group

    def _end_task(self) -> None:
        """Tell of the task that ended under every label that had it, and decide whether it is kept."""
        told: dict[int, list[Task[ProfiledRun]]] = {}
        for group in self._active:
            group.profile.end_task()
            group.is_active = False
            for task in group.ended:
                told.setdefault(id(task.origin), []).append(task)
            group.ended.clear()
        if len(self._active) > 1:
            self._entries.by_label = True
        self._active.clear()
        if self._kept is not None:
            for tasks in told.values():
                if self._kept.verdict([task.rates for task in tasks]) and "kept" in self._making:
                    self._export(tasks[0])

    def _export(self, task: Task[ProfiledRun]) -> None:
        row = self._entries.source(task)
        if row is not None:
            self._making["kept"].file.write(row + b"\n")

    def written(self) -> Profile:
        """Write what is left to write, put the files in place, and return what everything came to."""
        agents: list[JsonObject] = []
        repeats: list[JsonObject] = []
        warnings: list[str] = []
        for label, group in sorted(self._groups.items(), key=lambda one: str(one[0])):
            try:
                metrics = group.profile.end()
            except UnreadableRowError as error:
                raise _unreadable(error) from None
            ref = {} if label is None else {AGENT_REF_KEY: {"name": label}}
            agents.append(metrics.agent_metrics | ref)
            repeats += [entry | ref for entry in metrics.repeat_level_metrics]
            told = unequal(metrics.repeat_level_metrics)
            warnings += [] if told is None else [f"{label or 'all rollouts'}: {told}"]
            mean = metrics.agent_metrics.get("mean/reward")
            group.totals.mean_reward = mean if isinstance(mean, int | float) else None
        self._entries.end()
        _write(self._making["agents"], agents)
        _write(self._making["repeats"], repeats)
        for file in self._making.values():
            file.commit()
        if self._kept is not None and "kept" in self._paths:
            self._kept.exported = str(self._paths["kept"])
        return Profile(
            runs=[str(run.paths.output) for run in self._runs],
            labels=[group.totals for _, group in sorted(self._groups.items(), key=lambda one: str(one[0]))],
            kept=self._kept,
            files={name: str(path) for name, path in self._paths.items()},
            has_plan=all(run.plan is not None for run in self._runs),
            damage=[said for run in self._runs for said in run.damage],
            warnings=warnings,
        )


class _Group:
    """One label: its profile, its totals, and the tasks of it that ended and were not looked at yet."""

    def __init__(
        self,
        label: str | None,
        other_ks: Sequence[int],
        entries: Entries,
        on_entry: Callable[[Task[ProfiledRun], bytes], object],
    ) -> None:
        self.totals = LabelTotals(label, other_ks)
        self.ended: list[Task[ProfiledRun]] = []
        self.is_active = False
        self.profile: LabelProfile[ProfiledRun] = LabelProfile(self._ended, on_entry, entries.sample)

    def _ended(self, task: Task[ProfiledRun]) -> None:
        self.totals.add(task)
        self.ended.append(task)


def _ks_of(kept: Kept | None) -> set[int]:
    names = () if kept is None else names_in(kept.condition)
    return {int(name.removeprefix(PASS)) for name in names if name.startswith(PASS)}


def _unreadable(error: UnreadableRowError) -> LedgerError:
    where = f"{error.origin.paths.output}: " if isinstance(error.origin, ProfiledRun) else ""
    return LedgerError(f"{where}a row of task {error.task}: {error}")


def _twice(number: int, run: ProfiledRun, other: ProfiledRun) -> ProfileError:
    return ProfileError(
        f"rollout {unpacked_key(number)} is in {other.paths.output} and in {run.paths.output}: these runs number their "
        "tasks independently or overlap; profile them one by one, or give each row its own `_ng_task_index` before "
        "they are run"
    )


def _write(making: WholeFile, value: list[JsonObject]) -> None:
    making.file.write(msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n")

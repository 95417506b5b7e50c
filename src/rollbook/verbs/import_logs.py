"""Other people's logs → the files of a run: plan, results, failures, log and manifest, as if we had run it.

Rules:
* A task is what it says: samples of equal id, input and target are one, in whichever log they lie, and are numbered in
  the order in which they come. Their tries are numbered on from log to log.
* Nothing here knows a form: logs come opened, and come out as every other run does, through the one codec.
* The same logs give the same bytes: names and times are the logs' own, and no path of this machine is written.
* The files appear whole. What they hold was not run here: a resume refuses them, and the manifest says why.
* One run holds one model's answers to a task: logs of two models would be taken for repeats of one.

Source: collection.md §1.5 to §1.8; docs/import.md.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec

from rollbook.clock import Clock, SystemClock
from rollbook.errors import OutputExistsError
from rollbook.inputs.log_formats import opened_logs
from rollbook.inputs.logged import ForeignLog, LogError, LoggedRollout
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.run import Draft, Run, explained
from rollbook.ledger.whole_file import WholeFile, made_aside
from rollbook.records.codec import RunStamp, encode, saved_row, stamps_of
from rollbook.records.columns import packed_key
from rollbook.records.disposition import DEFAULT_CAP
from rollbook.records.ending import Ending
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME, RolloutKey
from rollbook.records.json_values import JsonObject
from rollbook.records.manifest import IMPORTED, Closed, LogEvent, Opened, Reserved, RunManifest, log_line
from rollbook.records.outcome import Failed, Outcome, Scored
from rollbook.records.place import File
from rollbook.verbs.stale_reports import forget_reports

_AT_ONCE: Final = 3000
_LISTED: Final = 3


@dataclass(frozen=True, slots=True)
class Imported:
    """What came of an import: the logs, by form; tasks and rollouts planned; how many of them ended how."""

    output: Path
    form: str
    logs: int
    tasks: int
    rollouts: int
    scored: int
    unscored: int
    failed: int
    failures: dict[str, int]

    @property
    def missing(self) -> int:
        """How many planned rollouts no log says anything of."""
        return self.rollouts - self.scored - self.unscored - self.failed


@dataclass(frozen=True, slots=True)
class Source:
    """One log, as the manifest names it."""

    name: str
    sha256: str
    form: str
    task: str
    model: str | None


def import_logs(
    paths: Sequence[Path],
    output: Path,
    *,
    scorer: str | None = None,
    overwrite: bool = False,
    clock: Clock | None = None,
) -> Imported:
    """Write the run at `output` that the logs at `paths` tell of, and return what came of it.

    `scorer` names whose score is the reward, `name` or `name/value`.

    Raises:
        LogError: a log cannot be read or would be overwritten, or the logs do not belong into one run.
        OutputExistsError: something is there already, and `overwrite` was not said.
        LedgerError: the files cannot be written.

    """
    logs = opened_logs(paths)
    _refuse_two_models(logs)
    sources = [_source(log) for log in logs]
    run = Run(RunPaths(output), clock or SystemClock())
    _refuse_over_logs(run.paths, logs)
    with run.claimed():
        if not overwrite and run.paths.existing():
            raise OutputExistsError(
                f"{run.paths.existing()[0]} exists already. Replace it with --overwrite, or give another --output"
            )
        return _written(run, logs, sources, scorer)


def _refuse_over_logs(paths: RunPaths, logs: Iterable[ForeignLog]) -> None:
    read = [log.head.path for log in logs]
    for path in paths.every_file:
        if path.exists() and any(path.samefile(log) for log in read):
            raise LogError(
                f"{path}: the run would be written over the log that it is imported from; give another --output"
            )


def _refuse_two_models(logs: Iterable[ForeignLog]) -> None:
    models: dict[str, tuple[str | None, Path]] = {}
    for log in logs:
        head = log.head
        model, path = models.setdefault(head.task, (head.model, head.path))
        if model != head.model:
            raise LogError(
                f"{head.path}: {head.task} was asked of {head.model} here and of {model} in {path}; import each into "
                "an --output of its own, and put them side by side with gym eval compare"
            )


def _source(log: ForeignLog) -> Source:
    head = log.head
    return Source(head.path.name, sha256_of(head.path), head.form, head.task, head.model)


def _written(run: Run, logs: Sequence[ForeignLog], sources: Sequence[Source], scorer: str | None) -> Imported:
    paths = run.paths
    with ExitStack() as aside, explained(paths):
        making = {
            path: aside.enter_context(made_aside(path)) for path in (paths.output, paths.failures, paths.manifest_log)
        }
        stamp = RunStamp(_run_id(sources, scorer), DEFAULT_CAP)
        begun = min(log.head.created_at for log in logs)
        files = _Files(making[paths.output], making[paths.failures], making[paths.manifest_log], stamp)
        files.tell(Opened(1, stamp.run_id, begun, (0, 0)))
        numbering = _Numbering()
        draft = aside.enter_context(run.drafted(_rows(logs, scorer, numbering, files)))
        files.reserve(0)
        seconds = sum(log.head.seconds for log in logs)
        files.tell(Closed(IMPORTED, max(log.head.closed_at for log in logs), files.sizes, seconds))
        _put_in_place(draft, _manifest(paths, draft, stamp, begun, sources), making.values())
    forget_reports(paths)
    return files.imported(paths.output, sources, len(numbering.tasks), draft.rollouts)


def _put_in_place(draft: Draft, manifest: RunManifest, making: Iterable[WholeFile]) -> None:
    """Put the plan and the manifest in force, and then what was written aside."""
    sealed = list(making)
    for file in sealed:
        file.seal()
    draft.commit(manifest)
    for file in sealed:
        file.place()


def _run_id(sources: Sequence[Source], scorer: str | None) -> str:
    told = [[source.sha256, source.task] for source in sources]
    return hashlib.sha256(msgspec.json.encode([told, scorer])).hexdigest()[:32]


def _manifest(paths: RunPaths, draft: Draft, stamp: RunStamp, begun: str, sources: Sequence[Source]) -> RunManifest:
    names = ", ".join(source.name for source in sources[:_LISTED]) + (", …" if len(sources) > _LISTED else "")
    return RunManifest(
        run_id=stamp.run_id,
        created_at=begun,
        output=paths.output.name,
        plan=draft.digest,
        not_resumable=f"its rollouts were imported from {sources[0].form} ({names}) and were not run here",
        others={IMPORTED: [msgspec.to_builtins(source) for source in sources]},
    )


def _rows(
    logs: Iterable[ForeignLog], scorer: str | None, numbering: "_Numbering", files: "_Files"
) -> Iterator[JsonObject]:
    """Yield the plan's rows; on the way, what the logs say of each is written."""
    for log in logs:
        numbering.next_log()
        for rollout in log.rollouts(scorer):
            key = numbering.key(rollout, log.head.path)
            row = rollout.row | {TASK_INDEX_KEY_NAME: key.task, ROLLOUT_INDEX_KEY_NAME: key.rollout}
            if rollout.ending is not None:
                files.save(key, rollout.ending, row, log.head.path)
            yield row


@dataclass(slots=True)
class _Numbering:
    """Who each rollout is: a task's number by what it says, and its tries numbered on from log to log."""

    tasks: dict[bytes, int] = field(default_factory=dict)
    _next: list[int] = field(default_factory=list)
    _first: dict[int, int] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)

    def next_log(self) -> None:
        """Note that another log begins."""
        self._first.clear()
        self._seen.clear()

    def key(self, rollout: LoggedRollout, path: Path) -> RolloutKey:
        """Return who `rollout` is.

        Raises:
            LogError: the log holds it twice.

        """
        digest = hashlib.sha256(encode(rollout.content)).digest()
        task = self.tasks.setdefault(digest, len(self.tasks))
        if task == len(self._next):
            self._next.append(0)
        first = self._first.setdefault(task, self._next[task])
        key = RolloutKey(task, first + rollout.repeat)
        number = packed_key(key)
        if number in self._seen:
            raise LogError(f"{path}: epoch {rollout.repeat + 1} of sample {rollout.content['id']!r} is in it twice")
        self._seen.add(number)
        self._next[task] = max(self._next[task], key.rollout + 1)
        return key


@dataclass(slots=True)
class _Files:
    """The files of records, and the log that hands out the one attempt of each."""

    results: WholeFile
    failures: WholeFile
    log: WholeFile
    stamp: RunStamp
    endings: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    _sizes: dict[File, int] = field(default_factory=lambda: {File.RESULTS: 0, File.FAILURES: 0})
    _reserved: list[int] = field(default_factory=list)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many bytes of results and of failures were written."""
        return self._sizes[File.RESULTS], self._sizes[File.FAILURES]

    def tell(self, event: LogEvent) -> None:
        """Write an event of the log."""
        self.log.file.write(log_line(event))

    def save(self, key: RolloutKey, ending: Ending, row: JsonObject, path: Path) -> None:
        """Write how the try of `key` ended.

        Raises:
            LogError: a value of the sample is no JSON.

        """
        file, saved = saved_row(ending, stamps_of(row), self.stamp)
        try:
            line = encode(saved) + b"\n"
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise LogError(f"{path}: sample {row['problem_id']!r} cannot be written as JSON: {error}") from None
        (self.results if file is File.RESULTS else self.failures).file.write(line)
        self._sizes[file] += len(line)
        self._count(ending.outcome)
        self._reserved += [key.task, key.rollout, 0]
        self.reserve(_AT_ONCE)

    def reserve(self, enough: int) -> None:
        """Write which attempts were handed out, once they are `enough` numbers."""
        if self._reserved and len(self._reserved) >= enough:
            self.tell(Reserved(self._reserved, (0, 0)))
            self._reserved = []

    def _count(self, outcome: Outcome) -> None:
        match outcome:
            case Failed(failure_class=name):
                self.endings["failed"] += 1
                self.failed[name] += 1
            case Scored():
                self.endings["scored"] += 1
            case _:
                self.endings["unscored"] += 1

    def imported(self, output: Path, sources: Sequence[Source], tasks: int, rollouts: int) -> Imported:
        """Return what was written."""
        return Imported(
            output=output,
            form=sources[0].form,
            logs=len(sources),
            tasks=tasks,
            rollouts=rollouts,
            scored=self.endings["scored"],
            unscored=self.endings["unscored"],
            failed=self.endings["failed"],
            failures=dict(sorted(self.failed.items())),
        )

"""One run, held for as long as somebody prepares it, collects into it and reports on it.

Rules:
* A writer holds the run's lock throughout. A reader takes none, changes nothing, and sees a running run as it
  was when it was opened.
* What was recorded while the store was open is counted from the fold, whoever folded it.

Source: collection.md §5.5.
"""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from rollbook.api.rollout_records import COMPLETED, FAILED, RolloutRecords, disposition_word
from rollbook.clock import SystemClock
from rollbook.errors import LedgerError
from rollbook.ledger.history import prefixes
from rollbook.ledger.lock import holder_of
from rollbook.ledger.manifest_store import read_manifest
from rollbook.ledger.ownership import resolve_rollout_owner, resolve_rollout_path
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.run import Run
from rollbook.records.manifest import RunManifest
from rollbook.records.outcome import Failed, Outcome, Result
from rollbook.records.place import File


class RolloutStore:
    """The run at `output`, which may be named by its failures sidecar or its materialized inputs as well.

    A context manager. `manifest` is None where no run was begun. Opening raises LedgerError where the history lies in
    two places, another process holds the run (for a writer), or a file is damaged.
    """

    def __init__(self, output: Path, read_only: bool = False) -> None:
        """Touch nothing yet."""
        self.output = Path(output)
        self.read_only = read_only
        self.manifest: RunManifest | None = None
        self.started_fresh = True
        self._records: RolloutRecords | None = None
        self._before = 0
        self._held = ExitStack()

    def __enter__(self) -> Self:
        """Take the run's lock unless only reading, and fold what is there."""
        with ExitStack() as held:
            self.output = resolve_rollout_path(resolve_rollout_owner(self.output), self.read_only)
            paths = RunPaths(self.output)
            if not self.read_only:
                run = Run(paths, SystemClock())
                held.enter_context(run.claimed())
                if not run.lost():
                    run.repair()
            self._read(paths)
            self._held = held.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Let go of the run."""
        self._held.close()

    def _read(self, paths: RunPaths) -> None:
        sizes = prefixes(paths)
        self.manifest = read_manifest(paths.manifest)
        if self.manifest is None:
            self.started_fresh = not paths.existing()
            return
        limits = {paths.output: sizes[File.RESULTS], paths.failures: sizes[File.FAILURES]}
        records = RolloutRecords.load(self.output, self.manifest, outcome_limits=limits)
        alive = self.read_only and paths.lock.exists() and holder_of(paths.lock) is not None
        records.live_session = self.manifest.session if alive else None
        self._records = records
        self._before = records.standings.records
        self.started_fresh = self._before == 0 and records.standings.attempts_handed_out() == 0

    @property
    def records(self) -> RolloutRecords:
        """The run's outcomes.

        Raises:
            LedgerError: there is no manifest, or the store is not open.

        """
        if self._records is None:
            raise LedgerError(
                f"{self.output}: no run with a manifest was opened here. `gym eval run --resume` takes up a folder "
                "without one; RolloutRecords.load(…, import_legacy=True) reads it"
            )
        return self._records

    @property
    def attempt_cap(self) -> int:
        """Failures that a rollout of the run may have."""
        return self.records.attempt_cap

    @property
    def attempt_extension(self) -> int:
        """What an explicit recovery added to the saved cap."""
        return self.records.attempt_extension

    @property
    def outcomes_recorded(self) -> int:
        """How many outcomes were folded since the store was opened."""
        return self.records.standings.records - self._before

    @property
    def progress_outcomes_recorded(self) -> int:
        """How many of them are results, or failures of an attempt that ran."""
        standings = self.records.standings
        return sum(_is_progress(standings.table.shape(row)) for row in range(self._before, standings.records))

    @property
    def made_progress(self) -> bool:
        """Whether there is one."""
        return self.progress_outcomes_recorded > 0

    def raw_outcomes_are_selected(self) -> bool:
        """Whether the plain rows of both files are what stands: one row a rollout, none superseded or omitted."""
        records = self.records
        words = (disposition_word(one) for one in records.standings.standings(records.rules()))
        return sum(word in {COMPLETED, FAILED} for word in words) == records.standings.records


def _is_progress(outcome: Outcome) -> bool:
    return isinstance(outcome, Result) or (isinstance(outcome, Failed) and not outcome.never_ran)

"""A run's saved outcomes, by the names that the field gives them: a face over the fold.

Rules:
* Nothing is decided here: where a rollout stands is the fold's word, and what its row holds is on disk.
* A rollout is named by its logical id, an attempt of it by (id, number).
* Nothing is kept for each rollout but the fold's columns and where its planned row lies.
* What does not belong to the run is refused, file and line named; nothing is written.

Source: collection.md §5.4, §21.3 (20, 21, 24).
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Self

from rollbook.api.named_fold import AttemptId, NamedFold
from rollbook.api.rollout_files import SavedFiles
from rollbook.api.rollout_views import Counts, Members, SavedOutcome, View, is_an_ending, saved_outcome
from rollbook.errors import ConfigError, InputError, LedgerError
from rollbook.ledger.history import History, planned_lines, read_history
from rollbook.ledger.ownership import resolve_rollout_owner, resolve_rollout_path
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.plan_rows import PlanInHand, PlanOnDisk, PlanRows
from rollbook.ledger.projection import PROJECTED_ROW_BYTES, UNREADABLE
from rollbook.ledger.reader import read_records
from rollbook.ledger.rollout_record import RolloutRecord
from rollbook.records.codec import (
    RunStamp,
    encode,
    is_non_superseding_rollout_row,
    is_omitted_rollout_row,
    saved_row,
    stamps_of,
)
from rollbook.records.coverage import FAILED_DISPOSITIONS, Coverage
from rollbook.records.disposition import Disposition, Rules, is_result, is_terminal_failure
from rollbook.records.identity import ATTEMPT_INDEX_KEY_NAME, RUN_ID_KEY, RolloutKey
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.manifest import RunManifest
from rollbook.records.outcome import Failed
from rollbook.records.reading import read_row
from rollbook.records.record import Record
from rollbook.records.rejudgment import REJUDGED_FAILURE_ID_KEY
from rollbook.records.row_identity import identity_of_row
from rollbook.records.standing import Standing, Standings
from rollbook.recovery.charges import ALLOCATION_ENDED, allocation_end_charges

COMPLETED: Final = "completed"
FAILED: Final = "failed"
MISSING: Final = "missing"


class RolloutRecords:
    """The outcomes of one run. `standings` is the fold; `live_session` the session that runs now, if one does."""

    def __init__(
        self, manifest: RunManifest, expected: Iterable[JsonObject], classification: object | None = None
    ) -> None:
        """Take the planned rows `expected`; nothing is read.

        Raises:
            InputError: a row names no rollout, or one that another row names.
            ConfigError: a classification is given; failures are told apart by what their rows say alone.

        """
        if classification is not None:
            raise ConfigError("a failure classification is not supported: leave `classification` out")
        self.manifest = manifest
        self.attempt_extension = manifest.attempt_extension
        self.live_session: int | None = None
        self.standings = Standings()
        plan = PlanInHand(expected)
        for key in plan:
            self.standings.plan(key)
        self._plan: PlanRows = plan
        self._files = SavedFiles()

    @classmethod
    def load(
        cls,
        output: Path,
        manifest: RunManifest,
        import_legacy: bool = False,
        outcome_limits: Mapping[Path, int] | None = None,
        skip_keys: frozenset[str] = frozenset(),
        *,
        projected_above: int = PROJECTED_ROW_BYTES,
    ) -> Self:
        """Fold what the files of the run at `output` say; nothing behind `outcome_limits` (bytes, by file) is read.

        `import_legacy` accepts rows that name no run, and numbers them in the order of the file. Rows of more than
        `projected_above` bytes are read back with null in the place of their `skip_keys`.

        Raises:
            LedgerError: a file is damaged, or holds a row that is not of this run; names file and line.

        """
        paths = RunPaths(resolve_rollout_path(resolve_rollout_owner(output), read_only=True))
        records = cls(manifest, ())
        records._files = SavedFiles.beside(paths, skip_keys, projected_above)
        limits = records._files.limits(outcome_limits)
        history = read_history(paths, limits)
        records.standings = history.standings
        records._plan = PlanOnDisk(paths.materialized_inputs, planned_lines(paths, history.manifest))
        if records._strangers(history, import_legacy):
            for record in read_records(paths, limits):
                records._check_run(record.run_id, records._files.named(record.place), import_legacy)
        return records

    def _strangers(self, history: History, import_legacy: bool) -> bool:
        known = {self.manifest.run_id} | ({None} if import_legacy or self.manifest.adopted else set())
        return bool(history.run_ids.keys() - known)

    @property
    def attempt_cap(self) -> int:
        """Failures that a rollout may have: the run's saved cap and what an explicit recovery added."""
        return self.manifest.max_rollout_attempts + self.attempt_extension

    @property
    def retry_terminal_timeouts(self) -> bool:
        """Whether terminal failures of the timeout classes run again."""
        return self.manifest.retry_terminal_timeouts

    @property
    def rerun_masked(self) -> frozenset[tuple[int, int, int]]:
        """Task, rollout and attempt of each masked result that an operator approved to run again."""
        return self.manifest.rerun_masked

    @property
    def expected(self) -> Mapping[str, JsonObject]:
        """The planned rows, by rollout; each is read from disk when it is asked for."""
        return self._named.planned()

    @property
    def latest(self) -> Mapping[str, int]:
        """The attempt whose ending stands, by rollout."""
        return self._named.by_rollout(
            lambda one: one.record.attempt if one.record and is_an_ending(one.record) else None
        )

    @property
    def payloads(self) -> Mapping[AttemptId, SavedOutcome]:
        """How each attempt ended, and where its row lies; `.record.read()` loads the row."""
        return View(self._named.ended, self._payload)

    @property
    def omitted(self) -> Members[AttemptId]:
        """The attempts of which a row says that no result exists."""
        return self._named.omitted()

    @property
    def attempt_counts(self) -> Counts:
        """The failures that count against the cap, by rollout."""
        return self._named.counts(self.standings.spent)

    @property
    def overridden_terminal_counts(self) -> Counts:
        """The terminal failures that `retry_terminal_timeouts` lets run again, by rollout."""
        return self._named.counts(lambda key: sum(map(self._is_overridden, self.standings.records_of(key))))

    @property
    def replay_blocked(self) -> Members[str]:
        """The rollouts that ended without a result, for a reason that does not let a resume run them again."""
        return self._named.where(lambda one: one.disposition is Disposition.HELD_INTERRUPTED)

    @property
    def unresolved_dispatches(self) -> Members[str]:
        """The rollouts of which an attempt was handed out and left neither an ending nor a word."""
        return self._named.where(lambda one: bool(self.standings.lost(one.key)))

    def disposition(self, identity: str) -> str:
        """Return `completed`, `failed` or `missing`.

        Raises:
            InputError: neither the plan nor a record names the rollout.

        """
        return disposition_word(self.standings.standing(self._named.key(identity), self.rules()))

    def selected(self, disposition: str) -> list[JsonObject]:
        """Return the rows that stand, of the rollouts at `disposition`, in plan order; of missing ones there are none.

        Raises:
            InputError: there is no such disposition.
            LedgerError: a row is no longer where it was.

        """
        return list(self._files.read_all(self.selected_records(disposition).values()))

    def selected_records(self, disposition: str) -> dict[AttemptId, RolloutRecord]:
        """Return where the rows of `selected` lie, by attempt; no row is read."""
        if disposition not in {COMPLETED, FAILED, MISSING}:
            raise InputError(f"disposition {disposition!r} is none of {COMPLETED}, {FAILED}, {MISSING}")
        found = [
            one.record
            for one in self._named.standings()
            if one.record is not None and disposition_word(one) == disposition
        ]
        records = [record for record in found if disposition != MISSING]
        return {(self._plan.name_of(record.key), record.attempt): self._where_is(record) for record in records}

    def pending(self, max_attempts: int) -> list[JsonObject]:
        """Return the rows that a resume would run with a cap of `max_attempts`, each with its next attempt number."""
        return [self._numbered(one.key) for one in self._named.standings(self.rules(max_attempts)) if _is_owed(one)]

    def failure_count(self, identity: str) -> int:
        """Return how many failures of the rollout count against the cap."""
        return self.standings.spent(self._named.key(identity))

    def exhausted_count(self, max_attempts: int) -> int:
        """Count the failed rollouts that are not final and have `max_attempts` failures."""
        counted = self.standings.coverage(rules=self.rules(max_attempts))
        return counted.exhausted + self._held_at_cap(counted, max_attempts)

    def stopped_count(self, max_attempts: int) -> int:
        """Count what resume leaves alone although it is neither final nor at `max_attempts`.

        A judge failure and a kept answer are left to re-judgment, an interruption of unknown cause to explicit
        recovery.
        """
        counted = self.standings.coverage(rules=self.rules(max_attempts))
        return counted.held + counted.held_interrupted - self._held_at_cap(counted, max_attempts)

    def coverage(self) -> JsonObject:
        """Return the saved coverage report: expected = scored + masked + unscored + failed + missing.

        `failed` counts by class; `exhausted`, `terminal` and `stopped` are parts of failed and missing. Nothing is
        imputed here. Source: collection.md §1.12.
        """
        counted = self.standings.coverage(rules=self.rules())
        at_cap = self._held_at_cap(counted, self.attempt_cap)
        return {
            "expected": counted.planned,
            "scored": counted.scored,
            "masked": counted.masked,
            "unscored": counted.unscored,
            "failed": dict(counted.failed_by_class),
            "missing": counted.interrupted + counted.never_started + counted.in_flight + counted.untouched,
            "exhausted": counted.exhausted + at_cap,
            "terminal": counted.settled,
            "stopped": counted.held + counted.held_interrupted - at_cap,
            "imputed": 0,
        }

    def allocation_end_charges(self) -> list[JsonObject]:
        """Return the failure rows that charge a rollout for each later end of an allocation that it was in flight in.

        Only for the holder of the run's lock: with another session alive, its attempts would look lost.
        """
        stamp = RunStamp(self.manifest.run_id, self.attempt_cap)
        charges = allocation_end_charges(self.standings, self.rules())
        return [
            saved_row(ALLOCATION_ENDED, stamps_of(self._numbered(key, attempt)), stamp)[1]
            for key, attempts in charges.items()
            for attempt in attempts
        ]

    def rerun_approved_identities(self) -> set[str]:
        """Return the rollouts whose standing result is a masked one that an operator approved to run again."""
        return set(self._named.where(lambda one: one.disposition is Disposition.APPROVED))

    def check_run_identity(self, row: JsonMapping, legacy: bool = False) -> None:
        """Refuse a row of another run; `legacy` lets one pass that names none.

        Raises:
            LedgerError: it is not of this run.

        """
        run_id = row.get(RUN_ID_KEY)
        self._check_run(run_id if isinstance(run_id, str) else None, "a row", legacy)

    def check_outcome(self, row: JsonMapping, legacy: bool = False) -> AttemptId:
        """Return which attempt `row` is, once it may be appended; nothing is changed.

        Raises:
            LedgerError: it is of another run, not planned, of an attempt that was never handed out, or of one that
                ended already and is not judged again.

        """
        self.check_run_identity(row, legacy)
        found = identity_of_row(row)
        if found is None:
            raise LedgerError("a row that names no rollout is no outcome")
        _, identity, attempt = found
        key = self._plan.key_of(identity)
        if key is None or not self.standings.is_planned(key):
            raise LedgerError(f"rollout {identity} is not in the plan of run {self.manifest.run_id}")
        if not (legacy or is_omitted_rollout_row(row) or is_non_superseding_rollout_row(row)):
            self._check_attempt(key, attempt, judged_again=REJUDGED_FAILURE_ID_KEY in row)
        return identity, attempt

    def outcome(self, row: JsonMapping, record: RolloutRecord) -> None:
        """Fold an outcome whose line was written at `record`.

        Raises:
            LedgerError: the row is no outcome.

        """
        place = self._files.place_of(record)
        try:
            self.standings.add(read_row(encode(row), place.file, place))
        except UNREADABLE as error:
            raise LedgerError(f"{record.place}: not a rollout record: {error}") from error

    def rules(self, max_attempts: int | None = None) -> Rules:
        """Return what decides about another attempt, with the run's cap or with `max_attempts`."""
        return Rules(
            cap=self.attempt_cap if max_attempts is None else max_attempts,
            retry_terminal_timeouts=self.retry_terminal_timeouts,
            rerun_masked=self.rerun_masked,
            released=self.manifest.released,
            group_scored=self.manifest.group_scored,
            live_session=self.live_session,
        )

    @property
    def _named(self) -> NamedFold:
        return NamedFold(self.standings, self._plan, self.rules)

    def _payload(self, attempt_id: object) -> SavedOutcome | None:
        record = self._named.ending(attempt_id)
        return None if record is None else saved_outcome(record, self._where_is(record), self.rules())

    def _where_is(self, record: Record) -> RolloutRecord:
        own_name = record.run_id is None and self._plan.states_names
        return self._files.found(record, None if own_name else self._plan.name_of(record.key))

    def _numbered(self, key: RolloutKey, attempt: int | None = None) -> JsonObject:
        """Return the planned row as an attempt of its rollout, by default as the next one."""
        number = self.standings.next_attempt(key) if attempt is None else attempt
        return self._plan.row(key) | ({ATTEMPT_INDEX_KEY_NAME: number} if number else {})

    def _is_overridden(self, record: Record) -> bool:
        failed = record.outcome
        return (
            isinstance(failed, Failed)
            and failed.terminal
            and not is_terminal_failure(failed, retry_terminal_timeouts=self.retry_terminal_timeouts)
        )

    def _held_at_cap(self, counted: Coverage, cap: int) -> int:
        """Count the held rollouts that have `cap` failures: no recovery but a larger cap runs them again."""
        if counted.held == 0:
            return 0
        held = (one for one in self._named.standings() if one.planned and one.disposition is Disposition.HELD)
        return sum(self.standings.spent(one.key) >= cap for one in held)

    def _check_run(self, run_id: str | None, what: str, legacy: bool) -> None:
        if run_id == self.manifest.run_id or (run_id is None and (legacy or self.manifest.adopted)):
            return
        named = "names no run" if run_id is None else f"is of run {run_id}"
        hint = "; import it as a legacy one" if run_id is None else ""
        raise LedgerError(f"{what} {named}, and this is run {self.manifest.run_id}{hint}")

    def _check_attempt(self, key: RolloutKey, attempt: int, *, judged_again: bool) -> None:
        name = self._plan.name_of(key)
        if attempt >= self.standings.next_attempt(key):
            raise LedgerError(f"attempt {attempt} of rollout {name} was never handed out")
        ended = any(is_an_ending(each) and each.attempt == attempt for each in self.standings.records_of(key))
        if ended and not judged_again:
            raise LedgerError(f"attempt {attempt} of rollout {name} has ended already")


def disposition_word(one: Standing) -> str:
    """Return `completed`, `failed` or `missing`: a result stands, a failure does, or neither."""
    if is_result(one.record):
        return COMPLETED
    return FAILED if one.disposition in FAILED_DISPOSITIONS else MISSING


def _is_owed(one: Standing) -> bool:
    return one.planned and one.is_owed

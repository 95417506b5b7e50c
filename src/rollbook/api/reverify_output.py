"""The run that judging again writes: a plan, a manifest that says where the answers came from, and a ledger.

Rules:
* It is a run like any other to whoever reads it; only who made it goes on with it.
* It goes on with the same answers, the same plan and the same verifiers, or not at all.
* Results that are taken over keep what they are and get this run's name; they are appended once.

Source: collection.md §5.4, §9.1.
"""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Final
from uuid import uuid4

import msgspec
from msgspec.structs import replace

from rollbook.api.provenance import session_entry
from rollbook.api.reverify_request import cap_of_new_runs
from rollbook.clock import Clock, timestamp
from rollbook.errors import ConfigError, DamagedRunError, InputError, LedgerError, ResumeRefusedError
from rollbook.ledger.contradictions import told_of_doubles
from rollbook.ledger.extension import extend_plan
from rollbook.ledger.history import History, check_plan, planned_lines, read_history
from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.reader import Line, payload_at, plain_lines
from rollbook.ledger.run import Run, explained
from rollbook.records.approval import Reverified
from rollbook.records.bulk import fold_plan
from rollbook.records.codec import encode
from rollbook.records.disposition import Rules
from rollbook.records.identity import RUN_ID_KEY, RolloutKey
from rollbook.records.manifest import RunManifest
from rollbook.records.place import File
from rollbook.records.reading import planned_line, read_row
from rollbook.records.standing import Standings
from rollbook.recovery.agreement import differences
from rollbook.recovery.damage import refusal
from rollbook.recovery.drift import Drift
from rollbook.recovery.plan_digest import PlanDigest as Digests
from rollbook.recovery.plan_digest import added_lines, compare_plans
from rollbook.verbs.reverify_answers import Answers, SavedResults
from rollbook.verbs.reverify_plan import source_rows
from rollbook.verbs.stale_reports import forget_reports

_GO_ON: Final = "its rewards come from judging saved answers again; go on with it with gym eval reverify … --resume"
_AT_ONCE: Final = 256
_NONE: Final = Drift.IRRELEVANT
_SHOWN: Final = 12
_RAW: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


Tell = Callable[[str], None]
"""Tells whoever looks on."""


def tell_nobody(_text: str) -> None:
    """Keep it to oneself."""


@dataclass(frozen=True, slots=True)
class Origin:
    """What the output is made of: the planned rows, where the answers came from, and what rewards depend on."""

    inputs: Path
    reverified: Reverified
    keys: dict[str, str]
    with_agents: bool = False


@dataclass(slots=True)
class Output:
    """A run that is being written, claimed by the caller."""

    run: Run
    origin: Origin
    clock: Clock
    command: tuple[str, ...] = ()
    tell: Tell = tell_nobody
    standings: Standings = field(default_factory=Standings)
    manifest: RunManifest = field(init=False)

    @property
    def rules(self) -> Rules:
        """What decides about another judging: what a judge failed on is asked again, up to the cap."""
        return self.rules_of(self.manifest.session)

    def rules_of(self, live_session: int | None) -> Rules:
        """Return the same with `live_session` running."""
        return Rules(
            cap=self.manifest.attempt_cap,
            retry_terminal_timeouts=self.manifest.retry_terminal_timeouts,
            release_held=True,
            live_session=live_session,
        )

    def begin(self, *, seeds: int, retry_terminal_timeouts: bool) -> None:
        """Put a fresh plan in force; `seeds` results are taken over afterwards.

        Raises:
            InputError, LedgerError: the rows cannot be read, or the disk does not take them.

        """
        with self.run.drafted(source_rows(self.origin.inputs, with_agents=self.origin.with_agents)) as draft:
            self.manifest = RunManifest(
                run_id=uuid4().hex,
                created_at=timestamp(self.clock.now()),
                output=self.run.paths.output.name,
                plan=draft.digest,
                configuration_keys=self.origin.keys,
                max_rollout_attempts=cap_of_new_runs(),
                retry_terminal_timeouts=retry_terminal_timeouts,
                unreserved=seeds,
                not_resumable=_GO_ON,
                reverified=self.origin.reverified,
                sessions=(session_entry(1, self.command, self.clock),),
            )
            draft.commit(self.manifest)
        forget_reports(self.run.paths)
        fold_plan(plain_lines(self.run.paths.materialized_inputs), self.standings, self._planned_twice)

    def _planned_twice(self, number: int, error: Exception) -> None:
        raise InputError(f"{self.origin.inputs}: line {number} of the plan: {error}")

    def go_on(self, *, seeds: int) -> None:
        """Take up what an earlier session wrote.

        Raises:
            DamagedRunError: its files lost something.
            ConfigError, ResumeRefusedError: it is no run of this kind, or one of other answers, rows or verifiers.

        """
        history = sound_history(self.run, self.tell)
        manifest = history.manifest
        if manifest is None or manifest.reverified is None:
            raise ConfigError(
                f"{self.run.paths.output}: no output of gym eval reverify; give another --output, or replace it with "
                "--overwrite"
            )
        self._refuse_other(manifest)
        entry = session_entry(history.log.session + 1, self.command, self.clock)
        manifest = replace(manifest, sessions=(*manifest.sessions, entry), unreserved=max(seeds, manifest.unreserved))
        self.standings = history.standings
        self.manifest = self._grown(manifest)
        with explained(self.run.paths, self.run.paths.manifest):
            write_manifest(self.run.paths.manifest, self.manifest)
            self.run.forget_metrics()

    def _refuse_other(self, manifest: RunManifest) -> None:
        before, now = manifest.reverified, self.origin.reverified
        if before is not None and (before.answers, before.source_run_id) != (now.answers, now.source_run_id):
            raise ResumeRefusedError(
                f"{self.run.paths.output}: holds rewards of other answers: {before.answers} of {before.source}; give "
                "another --output"
            )
        found = [one for one in differences(manifest.configuration_keys, self.origin.keys) if one.drift is not _NONE]
        if found:
            listed = "\n".join(f"  {one}" for one in found[:_SHOWN])
            raise ResumeRefusedError(
                f"{self.run.paths.output}: what the rewards depend on is not as it was:\n{listed}\nthe output would "
                "hold rewards of two verifiers; give another --output, or judge all of them anew with --overwrite"
            )

    def _grown(self, manifest: RunManifest) -> RunManifest:
        """Return the manifest with the plan longer by rows that the inputs have now."""
        paths = self.run.paths
        old = Digests.of((planned_line(line.text).key, line.text) for line in planned_lines(paths, manifest))
        comparison = compare_plans(old, self._rows())
        if comparison.changed_count or comparison.missing:
            raise ResumeRefusedError(
                f"{self.origin.inputs}: not the rows of {paths.materialized_inputs}: {comparison.changed_count} ask "
                f"something else, {comparison.missing} are gone; give another --output"
            )
        if not comparison.added:
            return manifest
        lines = [Line(0, 0, len(text), text) for _, text in added_lines(old, self._rows())]
        fold_plan(lines, self.standings, self._planned_twice)
        plan = extend_plan(paths, manifest.plan, lines, comparison.added)
        return replace(manifest, plan=plan)

    def _rows(self) -> Iterator[tuple[RolloutKey, bytes]]:
        for row in source_rows(self.origin.inputs, with_agents=self.origin.with_agents):
            text = encode(row)
            yield planned_line(text).key, text

    def take_over(self, source: SavedResults, judged: Answers) -> int:
        """Append the results of `source` that are neither judged again nor there already, and return their number."""
        wanted = (key for key in source if not judged.holds(key) and self.standings.of(key) is None)
        count = 0
        with self.run.paths.output.open("ab") as file:
            while batch := list(islice(wanted, _AT_ONCE)):
                for key in batch:
                    text = self._restamped(source, key)
                    file.write(text + b"\n")
                    self.standings.add(read_row(text, File.RESULTS))
                count += len(batch)
            file.flush()
            os.fsync(file.fileno())
        return count

    def _restamped(self, source: SavedResults, key: RolloutKey) -> bytes:
        record = source.standings.of(key)
        if record is None or record.place is None:
            raise LedgerError(f"{source.paths.output}: the result of rollout {key} is gone; read it again")
        row = _RAW.decode(payload_at(source.paths.output, record.place))
        return encode(row | {RUN_ID_KEY: self.manifest.run_id})


def sound_history(run: Run, tell: Tell) -> History:
    """Mend the ends of a run's files, and fold them.

    Raises:
        DamagedRunError: they lost something, or contradict each other; they are as they were found.

    """
    lost = run.lost()
    if lost:
        raise DamagedRunError(refusal([str(error) for error in lost]))
    for repair in run.repair():
        tell(repair.told)
    damage: list[LedgerError] = []
    history = read_history(run.paths, on_damage=damage.append, lost=())
    if history.manifest is not None:
        try:
            check_plan(run.paths, history.manifest)
            run.cut_plan(history.manifest.plan.bytes)
        except LedgerError as error:
            damage.append(error)
    if damage:
        raise DamagedRunError(refusal([str(error) for error in damage]))
    for told in told_of_doubles(run.paths, history.standings):
        tell(told)
    return history

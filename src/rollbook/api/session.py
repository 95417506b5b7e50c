"""One process's stay in a run: the plan it carries out, and what it goes on from.

Rules:
* Nothing is written before everything that the command says was judged; until a plan is committed, an earlier run is as
  it was.
* A session that owes nothing changes nothing.

Source: collection.md §2, §5.1, §5.4, §15; cases RC-16, RC-19, RC-20.
"""

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Final

import msgspec
from msgspec.structs import replace

from rollbook.api.batch import check_batch
from rollbook.api.opening import Addition, Agreed, Terms, adopted_manifest, agreed, fresh_manifest, taken_up
from rollbook.api.options import most_at_once, plan_options, prompt_of, sources_of
from rollbook.api.provenance import session_entry
from rollbook.api.request import EvaluationRequest
from rollbook.clock import Clock
from rollbook.config.attempt_cap import max_rollout_attempts
from rollbook.errors import ConfigError, DamagedRunError, InputError, LedgerError
from rollbook.ledger.contradictions import manifest_gone, told_of_doubles
from rollbook.ledger.extension import extend_plan
from rollbook.ledger.history import History, check_plan, planned_lines, read_history
from rollbook.ledger.manifest_store import read_manifest, write_manifest
from rollbook.ledger.reader import plain_lines, scan_whole, whole_lines
from rollbook.ledger.run import Draft, Run, explained
from rollbook.ledger.tail import TailRepair
from rollbook.plan.directory import Directory
from rollbook.plan.expand import Expansion
from rollbook.plan.rollouts import RolloutReader
from rollbook.plan.targets import name_in
from rollbook.plan.together import refuse_interleaved, refuse_too_few_lanes
from rollbook.records.bulk import fold_plan
from rollbook.records.columns import packed
from rollbook.records.coverage import Coverage
from rollbook.records.disposition import Rules
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import AGENT_REF_KEY, NG_ENVIRONMENT_SERVER_KEY
from rollbook.records.manifest import RunManifest
from rollbook.records.reading import PLAN_HEAD, planned_line
from rollbook.records.standing import Standings
from rollbook.records.task import Rollout
from rollbook.recovery.damage import gone_on_over, refusal
from rollbook.servers.serving.deployment import Deployment
from rollbook.verbs.prepare import planned_rows
from rollbook.verbs.stale_reports import forget_reports

_LINES_AT_ONCE: Final = 1000
_AS_THEY_ARE: Final = (
    "its rows are taken as they are, and its plan stands: what this command says of rows, prompts and settings was not "
    "compared"
)
"""So many lines of a plan are looked at in a few milliseconds."""


class Planned(msgspec.Struct):
    """What a session carries out: tasks and rollouts, of which `owed` are to be run; in force once committed."""

    tasks: int
    rollouts: int
    owed: int
    commit: Callable[[], None]


class Session:
    """The run as this process sees it: its manifest and its fold, once a plan is there."""

    manifest: RunManifest

    def __init__(self, request: EvaluationRequest, run: Run, deployment: Deployment, clock: Clock) -> None:
        self.request, self.run, self.deployment, self.clock = request, run, deployment, clock
        self.notes: list[str] = []
        self.went_on_over_damage = False
        self.standings = Standings()
        self.directory = Directory(deployment.global_config_dict)

    @property
    def terms(self) -> Terms:
        """What this command says that answers depend on."""
        cap = max_rollout_attempts(os.environ)
        return Terms(self.request.settings, self.deployment.global_config_dict, cap)

    @property
    def rules(self) -> Rules:
        """What decides about another attempt while this session runs."""
        return self.rules_of(self.manifest.session)

    def rules_of(self, live_session: int | None) -> Rules:
        """Return what decides about another attempt, with `live_session` running."""
        return Rules(
            cap=self.manifest.attempt_cap,
            retry_terminal_timeouts=self.manifest.retry_terminal_timeouts,
            release_held=self.request.settings.resubmit,
            rerun_masked=self.manifest.rerun_masked,
            released=self.manifest.released,
            live_session=live_session,
            group_scored=self.manifest.group_scored,
        )

    def coverage(self) -> Coverage:
        """Count where the planned rollouts stand, once no attempt is in flight any more."""
        return self.standings.coverage(rules=self.rules_of(None))

    @contextmanager
    def planned(self) -> Iterator[Planned]:
        """Give the plan that this session carries out: a fresh one, or the one that is on disk."""
        settings = self.request.settings
        if settings.resume_from_cache and self.run.can_continue:
            yield self._kept_plan()
            return
        if settings.resume_from_cache:
            self.notes.append(f"nothing to resume at {self.run.paths.output}; the run starts afresh")
        if not settings.overwrite:
            self.run.refuse_existing(resuming=settings.resume_from_cache)
        expansion = Expansion(plan_options(settings, self.directory))
        named: dict[tuple[str | None, str | None], None] = {}
        if settings.group_scored:
            refuse_interleaved(interleave=settings.interleave_repeats)
        with self.run.drafted(_watched(self._rows(expansion), named)) as draft:
            self.notes += expansion.notes
            if settings.group_scored:
                refuse_too_few_lanes(expansion.largest_task, most_at_once(settings))
            check_batch(settings.batch_manifest_fpath, scan_whole(draft.making.aside))
            yield Planned(expansion.tasks, draft.rollouts, draft.rollouts, lambda: self._begin(draft, named))

    def _rows(self, expansion: Expansion) -> Iterable[JsonObject]:
        settings = self.request.settings
        return planned_rows(
            sources_of(settings),
            expansion,
            resolve=self.directory.resolved,
            prompt=prompt_of(settings),
            interleave=settings.interleave_repeats,
        )

    def _begin(self, draft: Draft, named: Iterable[tuple[str | None, str | None]]) -> None:
        self._open(fresh_manifest(self.terms, draft.digest, named, self.clock), ())
        draft.commit(self.manifest)
        forget_reports(self.run.paths)
        self._fold_plan()

    def _open(self, manifest: RunManifest, drift: Iterable[str], last_session: int = 0) -> None:
        number = max(manifest.session, last_session) + 1
        entry = session_entry(number, self.request.command, self.clock, tuple(drift))
        mine = {"output": self.run.paths.output.name, "sessions": (*manifest.sessions, entry)}
        self.manifest = replace(manifest, **mine)

    def _kept_plan(self) -> Planned:
        """Mend what a dead writer left, fold what is there, and judge every difference; nothing is sent yet.

        What is missing of what was committed is looked for first: what is refused is left as it was found.
        """
        lost = self.run.lost()
        if not lost or self.request.settings.allow_unsafe_resume:
            self.notes += [repair.told for repair in self._repairs()]
        history = self._history(lost)
        self.standings = history.standings
        found = self._agreed(history)
        self.manifest = found.manifest
        self.notes += found.notes
        self._check_names(history)
        longer = chain(planned_lines(self.run.paths, self.manifest), found.addition.lines())
        check_batch(self.request.settings.batch_manifest_fpath, longer)
        self._open(self.manifest, found.drift, history.log.session)
        fold_plan(found.addition.lines(), self.standings, lambda _number, _known: None)
        if self.manifest.group_scored:
            refuse_too_few_lanes(self.standings.largest_task(), most_at_once(self.request.settings))
        owed = self.standings.coverage(rules=self.rules).owed
        rollouts = self.manifest.plan.rollouts + found.addition.rollouts
        return Planned(self.standings.tasks(), rollouts, owed, lambda: self._go_on(found.addition))

    def _agreed(self, history: History) -> Agreed:
        manifest = history.manifest
        if manifest is None:
            adopted = adopted_manifest(self.terms, history, self.run.paths, self.clock)
            return Agreed(adopted, [f"the folder has no manifest; {_AS_THEY_ARE}"], [], Addition())
        self._check_plan(manifest, history.plan.rollouts)
        if manifest.was_judged_first:
            note = f"the folder had no manifest when a judge was paid for it; {_AS_THEY_ARE}"
            return Agreed(taken_up(manifest, self.terms, history), [note], [], Addition())
        return agreed(manifest, self.terms, history, self.run.paths, self._fresh_rows)

    def _go_on(self, addition: Addition) -> None:
        paths = self.run.paths
        with explained(paths, paths.materialized_inputs):
            if addition.rollouts:
                plan = extend_plan(paths, self.manifest.plan, addition.lines(), addition.rollouts)
                self.manifest = replace(self.manifest, plan=plan)
        with explained(paths, paths.manifest):
            write_manifest(self.run.paths.manifest, self.manifest)
            self.run.forget_metrics()

    def _fresh_rows(self) -> Iterable[JsonObject]:
        return self._rows(Expansion(plan_options(self.request.settings, self.directory)))

    def _repairs(self) -> Iterator[TailRepair]:
        """Mend the ends of files; a plan that a manifest describes is judged by its digest instead."""
        yield from self.run.repair()
        if self._is_described():
            return
        repair = self.run.mended(self.run.paths.materialized_inputs)
        yield from filter(None, (repair,))

    def _is_described(self) -> bool:
        """Whether a manifest says which plan is in force; one that cannot be read does, unless told to go on."""
        try:
            return read_manifest(self.run.paths.manifest) is not None
        except LedgerError:
            return not self.request.settings.allow_unsafe_resume

    def _history(self, lost: Iterable[LedgerError]) -> History:
        damage: list[LedgerError] = []
        history = read_history(self.run.paths, on_damage=damage.append, lost=lost)
        damage += manifest_gone(self.run.paths, history.log)
        if damage:
            self._tolerate([str(error) for error in damage])
        self.notes += told_of_doubles(self.run.paths, history.standings)
        return history

    def _check_plan(self, manifest: RunManifest, found: int) -> None:
        """Judge a plan that is not the manifest's; where rollouts are missing, nobody knows what the run was to do."""
        try:
            check_plan(self.run.paths, manifest)
        except LedgerError as error:
            if found != manifest.plan.rollouts:
                of = manifest.plan.rollouts
                told = f"{found} of its {of} rollouts are there, and no resume does without the rest"
                raise DamagedRunError(f"{error}\n{told}: restore the plan") from error
            self._tolerate([str(error)])
            return
        repair = self.run.cut_plan(manifest.plan.bytes)
        self.notes += [repair.told] if repair else []

    def _tolerate(self, damage: list[str]) -> None:
        if not self.request.settings.allow_unsafe_resume:
            raise DamagedRunError(refusal(damage))
        self.went_on_over_damage = True
        self.notes += gone_on_over(damage)

    def _check_names(self, history: History) -> None:
        """Refuse a plan whose agents or servers this configuration does not have, each named once, with its line."""
        faults = []
        for (agent, server), number in history.plan.first_lines.items():
            try:
                self.directory.find(agent, server)
            except ConfigError as error:
                faults.append(f"{self.run.paths.materialized_inputs}:{number}: {error}")
        if faults:
            raise InputError("\n".join([*faults, "Mend the configuration, or plan anew with --overwrite"]))

    def _fold_plan(self) -> None:
        """Note the planned rollouts that were not noted yet."""
        lines = plain_lines(self.run.paths.materialized_inputs, self.manifest.plan.bytes)
        fold_plan(lines, self.standings, lambda _number, _known: None)

    def names_several_servers(self) -> bool:
        """Whether the plan's rollouts go to more than one environment server."""
        names = set(self.standings.columns.names)
        return len({self.directory.find(agent, server).server for agent, server in names if agent or server}) > 1


class PlannedFor(msgspec.Struct, frozen=True):
    """What the plan of a session holds for each environment server."""

    session: Session

    def rollouts(self, server: str) -> int:
        """Return how many rollouts of the plan go to `server`."""
        groups, _ = self.session.standings.counted(self.session.rules)
        names = ((group.agent, group.server, group.coverage.planned) for group in groups)
        return sum(count for agent, stamped, count in names if count and self._goes_to(agent, stamped, server))

    def by_task(self, server: str) -> Counter[int]:
        """Return how many rollouts of the plan go to `server`, by task."""
        counts: Counter[int] = Counter()
        for line in planned_lines(self.session.run.paths, self.session.manifest):
            planned = planned_line(line.text)
            if self._goes_to(planned.agent, planned.server, server):
                counts[planned.key.task] += 1
        return counts

    def server_of(self, agent: str | None, stamped: str | None) -> str | None:
        """Return the environment server of what names this agent and this server; None where there is none."""
        try:
            return self.session.directory.find(agent, stamped).server
        except ConfigError:
            return stamped

    def _goes_to(self, agent: str | None, stamped: str | None, server: str) -> bool:
        return self.session.directory.find(agent, stamped).server == server


class PlanLines(msgspec.Struct, frozen=True):
    """The plan's rollouts that are owed as the session stands; each pass reads the plan anew.

    None comes after every so many lines of which none is owed: whoever goes through them may pause there.
    """

    session: Session

    def __iter__(self) -> Iterator[Rollout | None]:
        """Yield rollouts in plan order; a line that is settled is not looked into."""
        session = self.session
        is_owed = session.standings.owed_test(session.rules)
        read = RolloutReader(session.directory.find)
        for number, _, _, text in whole_lines(session.run.paths.materialized_inputs, session.manifest.plan.bytes):
            head = PLAN_HEAD.decode(text)
            if is_owed(packed(head.task, head.rollout)):
                yield read(text.rstrip())
            elif number % _LINES_AT_ONCE == 0:
                yield None


def _watched(rows: Iterable[JsonObject], named: dict[tuple[str | None, str | None], None]) -> Iterator[JsonObject]:
    """Yield `rows`, noting the (agent, stamped server) pairs in them."""
    for row in rows:
        named[_names(row)] = None
        yield row


def _names(row: JsonObject) -> tuple[str | None, str | None]:
    server = row.get(NG_ENVIRONMENT_SERVER_KEY)
    return name_in(row.get(AGENT_REF_KEY)), server if isinstance(server, str) else None

"""Whatever happens to a run, in whatever order, its ledger on disk says what a slow and simple model says."""

import asyncio
import contextlib
import shutil
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from property.handing_over import together
from property.ledger_endings import DRAINED, EVIDENCE, FAILURES, INTERRUPTIONS, RESULTS
from property.ledger_model import Story, disputed
from rollbook.errors import LedgerError
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.history import History, read_history
from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.run import Run
from rollbook.ledger.saved_line import saved_line
from rollbook.ledger.writer import Durability, Writer, WriterOptions
from rollbook.plan.rollouts import Destination, numbered, rollout_of
from rollbook.records.codec import RunStamp, encode
from rollbook.records.coverage import covered
from rollbook.records.disposition import OWED, Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import PlanDigest, RunManifest
from rollbook.records.outcome import without_text
from rollbook.records.place import File
from rollbook.records.reading import read_row
from rollbook.records.standing import Standings
from rollbook.recovery.charges import ALLOCATION_ENDED, allocation_end_charges
from rollbook.testing.manual_clock import ManualClock
from rollbook.verbs.session_ledger import SessionLedger

CAP = 3
STAMP = RunStamp("r", CAP)
KEYS = [RolloutKey(task, rollout) for task in range(3) for rollout in range(2)]
APPROVED = frozenset({(0, 0, 0), (0, 0, 1), (1, 1, 0)})
PICKS = st.integers(0, 59)
ANY_ENDING = st.sampled_from(RESULTS + FAILURES + INTERRUPTIONS)


class LedgerMachine(RuleBasedStateMachine):
    """Drives one run's files; a session is open while `ledger` is there."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.paths = RunPaths(Path(tempfile.mkdtemp()) / "run.jsonl")
        self.clock = ManualClock()
        self.stories = {key: Story() for key in KEYS}
        self.plan = {key: _rollout(key) for key in KEYS}
        self.stopped = False
        self.session = 0
        self.ledger = None
        self.in_flight = {}
        self.rules = Rules(CAP)
        self.written = {}
        self.charged = Counter()
        self.paths.materialized_inputs.write_bytes(b"".join(row.line + b"\n" for row in self.plan.values()))
        self.resume(release=False, timeouts=False, omitted=False)

    def teardown(self) -> None:
        if self.ledger:
            self.crash()
        self.runner.close()
        shutil.rmtree(self.paths.output.parent)

    # What a session does.

    @precondition(lambda self: not self.ledger)
    @rule(release=st.booleans(), timeouts=st.booleans(), omitted=st.booleans())
    def resume(self, release, timeouts, omitted):
        Run(self.paths, self.clock).repair()
        self.session += 1
        self.rules = Rules(CAP, timeouts, release, APPROVED, self.session)
        digest = PlanDigest(sha256=sha256_of(self.paths.materialized_inputs), bytes=self._plan_size, rollouts=len(KEYS))
        write_manifest(self.paths.manifest, RunManifest(run_id="r", created_at="now", plan=digest))
        self.standings = self._history().standings
        self.dead = False
        options = WriterOptions(Durability.FLUSH, record_omitted=omitted, may_write=self._may_write)
        self.records_omitted = omitted
        self.writer = Writer(self.paths, STAMP, self.clock, options)
        self.ledger = SessionLedger(self.writer, self.standings, "r", self.session, self.clock)
        self.stack = contextlib.AsyncExitStack()
        self.runner.run(self._enter())
        self._charge()

    async def _enter(self):
        await self.stack.enter_async_context(self.writer)
        await self.stack.enter_async_context(self.ledger.opened())

    def _charge(self):
        charges = allocation_end_charges(self.standings, self.rules)
        assert charges == {key: tuple(lost) for key in KEYS if (lost := self._charges(key, self.rules))}
        for key, attempts in charges.items():
            for attempt in attempts:
                self.charged[key, attempt] += 1
                self._write(numbered(self.plan[key], attempt), ALLOCATION_ENDED)
        assert allocation_end_charges(self._history().standings, self.rules) == {}

    @precondition(lambda self: self.ledger and self._owed())
    @rule(pick=PICKS, many=st.integers(1, 3))
    def dispatch(self, pick, many):
        owed = self._owed()
        keys = list(dict.fromkeys(owed[(pick + n) % len(owed)] for n in range(many)))
        for rollout in self._handed_over([partial(self.ledger.reserve, self.plan[key]) for key in keys]):
            self._handed_out(rollout)

    @precondition(lambda self: self.in_flight)
    @rule(pick=PICKS, ending=st.sampled_from(RESULTS))
    def finish(self, pick, ending):
        self._settle(pick, ending)

    @precondition(lambda self: self.in_flight)
    @rule(pick=PICKS, ending=st.sampled_from(FAILURES))
    def fail(self, pick, ending):
        self._settle(pick, ending)

    @precondition(lambda self: self.in_flight)
    @rule(pick=PICKS, ending=st.sampled_from(INTERRUPTIONS))
    def interrupt(self, pick, ending):
        self._settle(pick, ending)

    @precondition(lambda self: self.in_flight)
    @rule(pick=PICKS)
    def fail_with_routing_off(self, pick):
        self._settle(pick, EVIDENCE)

    @precondition(lambda self: self.in_flight)
    @rule(pick=PICKS)
    def refuse(self, pick):
        rollout = self._taken(pick)
        self.runner.run(self.ledger.refused(rollout, "503"))
        self.stories[rollout.key].refused.add(rollout.attempt)

    @precondition(lambda self: self.in_flight)
    @rule(pick=PICKS, many=st.integers(1, 3))
    def cut(self, pick, many):
        cut = [self._taken(pick) for _ in range(min(many, len(self.in_flight)))]
        self.runner.run(self.ledger.cut(cut, "grace is over"))
        for rollout in cut:
            self.stories[rollout.key].cut.add(rollout.attempt)

    @precondition(lambda self: self.ledger)
    @rule()
    def drain(self):
        owed = self._owed()
        self.runner.run(self.ledger.stopped("SIGTERM"))
        self.stopped = True
        for key in owed if self.records_omitted else ():
            self._write(self.plan[key], DRAINED)

    @precondition(lambda self: self.ledger and self._attempts(unended=True))
    @rule(pick=PICKS, ending=ANY_ENDING)
    def hear_late(self, pick, ending):
        key, attempt = _picked(self._attempts(unended=True), pick)
        self._write(numbered(self.plan[key], attempt), ending)

    @precondition(lambda self: self.ledger)
    @rule(in_order=st.booleans())
    def close(self, in_order):
        self._leave(None if in_order else ConnectionError())

    @precondition(lambda self: self.ledger)
    @rule()
    def crash(self):
        self.dead = True
        self._leave(KeyboardInterrupt())

    @precondition(lambda self: self.ledger)
    @rule(data=st.data())
    def tear(self, data):
        """Die while a batch of many words is on its way, of which the first bytes reach the disk."""
        before = {path: path.stat().st_size for path in self._stream}
        calls = [*self._some_endings(data), *self._some_reservations(data)]
        told = {path: [] for path in self._stream}
        for path, _, happened in calls:
            told[path].append(happened)
        self._handed_over([call for _, call, _ in calls])
        self.crash()
        lengths = {path: path.stat().st_size - size for path, size in before.items()}
        left = data.draw(st.integers(0, sum(lengths.values())), label="bytes that were written")
        for path, length in lengths.items():
            self._cut_back(path, before[path], min(left, length), told[path])
            left -= min(left, length)

    def _some_reservations(self, data):
        owed = self._owed()
        keys = data.draw(st.lists(st.sampled_from(owed), unique=True), label="reserved") if owed else []
        attempts = [numbered(self.plan[key], self.stories[key].next_attempt()) for key in keys]

        def happened():
            for rollout in attempts:
                self._handed_out(rollout)
                del self.in_flight[rollout.key]

        calls = [(self.paths.manifest_log, partial(self.ledger.reserve, self.plan[key]), None) for key in keys]
        return [*calls[:-1], (*calls[-1][:2], happened)] if calls else []

    def _some_endings(self, data):
        keys = list(self.in_flight)
        ending = st.none() | ANY_ENDING
        for key in data.draw(st.lists(st.sampled_from(keys), unique=True), label="ended") if keys else ():
            rollout, ended = self.in_flight[key], data.draw(ending)
            story = self.stories[key]
            if ended is None:
                refused = partial(self.ledger.refused, rollout, "429")
                yield self.paths.manifest_log, refused, lambda s=story, a=rollout.attempt: s.refused.add(a)
            else:
                line = saved_line(rollout, ended, STAMP)
                path = self.paths.output if line.file is File.RESULTS else self.paths.failures
                yield path, partial(self.ledger.write, rollout, ended), lambda s=story, n=line: _tell(s, n)

    def _cut_back(self, path, start, kept, told):
        """Cut `path` to `kept` bytes behind `start`; a line that lacks its newline alone has happened."""
        written = path.read_bytes()[start:]
        with path.open("r+b") as file:
            file.truncate(start + kept)
        lines = written.splitlines(keepends=True)
        end = 0
        for line, happened in zip(lines, filter(None, told), strict=True):
            end += len(line)
            if kept >= end - 1:
                happened()

    # What is done to the files between two sessions.

    @precondition(lambda self: not self.ledger and not self._torn and self._attempts())
    @rule(pick=PICKS, ending=ANY_ENDING)
    def find_a_late_row(self, pick, ending):
        key, attempt = _picked(self._attempts(), pick)
        self._append(saved_line(numbered(self.plan[key], attempt), ending, STAMP))

    @precondition(lambda self: not self.ledger and not self._torn)
    @rule(pick=PICKS, path=st.sampled_from(["output", "failures"]))
    def duplicate(self, pick, path):
        path = getattr(self.paths, path)
        lines = path.read_bytes().splitlines(keepends=True)
        if lines:
            file = File.RESULTS if path == self.paths.output else File.FAILURES
            self._append(
                msgspec.structs.replace(
                    saved_line(self.plan[KEYS[0]], RESULTS[0], STAMP), file=file, pieces=(_picked(lines, pick),)
                )
            )

    # What always holds.

    @invariant()
    def the_files_the_session_and_the_model_say_the_same(self):
        history = self._history()
        read = history.standings
        for rules in (self.rules, replace(self.rules, live_session=None)):
            self._agrees(read, rules)
        assert history.log.session == self.session
        for key in KEYS if self.ledger else ():
            lives, says = _facts(self.standings, key, self.rules), _facts(read, key, self.rules)
            assert lives == says, f"{key}: the session has {lives}, its files say {says}"

    @invariant()
    def nothing_that_was_written_has_changed(self):
        for path in (*self._stream, self.paths.materialized_inputs):
            now = path.read_bytes()
            assert now.startswith(self.written.get(path, b""))
            self.written[path] = now[: now.rfind(b"\n") + 1]

    @invariant()
    def no_loss_is_charged_twice(self):
        assert set(self.charged.values()) <= {1}

    def _history(self) -> History:
        damage = []
        history = read_history(self.paths, on_damage=damage.append)
        assert ["has another result" in str(one) for one in damage] == [True] * (disputed(self.stories) > 0)
        return history

    def _agrees(self, standings: Standings, rules: Rules) -> None:
        counts = Counter()
        for key, story in self.stories.items():
            stands = story.disposition(key, rules, stopped=self.stopped)
            counts[stands] += 1
            assert standings.standing(key, rules).disposition is stands, (key, story)
            record, row = standings.of(key), story.stands()
            assert (record and (record.attempt, record.outcome)) == row
            assert standings.spent(key) == story.spent(), (key, story)
            assert list(standings.lost(key)) == story.lost()
            assert standings.next_attempt(key) == story.next_attempt()
        coverage = standings.coverage(rules=rules)
        assert coverage.law_holds
        expected = covered(counts, coverage.failed_by_class, None, 0, disputed=disputed(self.stories))
        assert coverage == expected, f"{coverage} is not {expected}"

    # Steps of the rules.

    @property
    def _stream(self):
        """The files in the order in which one batch is written to them."""
        return self.paths.manifest_log, self.paths.failures, self.paths.output

    @property
    def _torn(self):
        return any(path.read_bytes()[-1:] not in {b"", b"\n"} for path in self._stream)

    @property
    def _plan_size(self):
        return self.paths.materialized_inputs.stat().st_size

    def _may_write(self):
        if self.dead:
            raise LedgerError("a dead process writes nothing")

    def _owed(self):
        stands = (
            (key, story.disposition(key, self.rules, stopped=self.stopped)) for key, story in self.stories.items()
        )
        return [key for key, disposition in stands if disposition in OWED]

    def _charges(self, key, rules):
        return self.stories[key].charges(key, rules, stopped=self.stopped)

    def _attempts(self, *, unended=False):
        return [
            (key, attempt)
            for key, story in self.stories.items()
            for attempt in (story.unended() if unended else story.handed_out)
            if key not in self.in_flight or self.in_flight[key].attempt != attempt
        ]

    def _handed_out(self, rollout):
        story = self.stories[rollout.key]
        assert rollout.attempt not in story.handed_out
        story.handed_out[rollout.attempt] = self.session
        self.in_flight[rollout.key] = rollout

    def _taken(self, pick):
        return self.in_flight.pop(_picked(list(self.in_flight), pick))

    def _settle(self, pick, ending):
        self._write(self._taken(pick), ending)

    def _write(self, rollout, ending):
        self._handed_over([partial(self.ledger.write, rollout, ending)])
        _tell(self.stories[rollout.key], saved_line(rollout, ending, STAMP))

    def _handed_over(self, calls):
        return self.runner.run(together(calls))

    def _append(self, saved):
        path = self.paths.output if saved.file is File.RESULTS else self.paths.failures
        with path.open("ab") as file:
            file.write(saved.line)
        _tell(self.stories[read_row(saved.line, saved.file).key], saved)

    def _leave(self, why):
        with contextlib.suppress(KeyboardInterrupt, ConnectionError):
            self.runner.run(self._left(why))
        self.ledger, self.in_flight = None, {}

    async def _left(self, why):
        async with self.stack:
            if why is not None:
                raise why


def _rollout(key):
    row = {"_ng_task_index": key.task, "_ng_rollout_index": key.rollout, "agent_ref": {"name": "adder"}}
    return rollout_of(encode(row), lambda *_: Destination("env"))


def _tell(story, saved):
    record = read_row(saved.line, saved.file)
    rows = story.results if saved.file is File.RESULTS else story.failures
    rows.append((record.attempt, without_text(record.outcome)))


def _facts(standings, key, rules):
    record = standings.of(key)
    stands = standings.standing(key, rules).disposition
    return record and replace(record, place=None), stands, standings.spent(key), standings.lost(key)


def _picked(choices, pick):
    return choices[pick % len(choices)]


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = (
    settings.get_profile("nightly")
    if settings.get_current_profile_name() == "nightly"
    else settings(max_examples=25, stateful_step_count=25, deadline=None)
)

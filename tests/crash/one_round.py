"""One round: a run that is struck so often, and resumed until nothing is owed, with the claims made after every death.

Rules:
* A round is decided by its seed and its blows.
* What the witness saw is read once it has nothing in flight, so that a session's requests are its own.
"""

import json
import os
import random
import signal
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from crash import claims
from crash.launching import Launcher, Process, knows
from crash.script import mean_reward

MOST_RESUMES: Final = 15
SHOWN: Final = 3
GRACE: Final = 60.0
ENDS: Final = {0, 3}
EVENTS: Final = ("clock", "head", "plan", "request", "request", "reply", "reply", "aggregate", "aggregated")
WARNINGS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)


@dataclass(frozen=True)
class Shape:
    """How large the run is."""

    tasks: int = 50
    repeats: int = 2
    lanes: int = 64

    @property
    def keys(self) -> set[claims.Key]:
        return {(task, rollout) for task in range(self.tasks) for rollout in range(self.repeats)}


@dataclass(frozen=True)
class Blow:
    """When which signal falls; then, perhaps, a SIGKILL."""

    event: str = "clock"
    count: int = 1
    delay: float = 0.0
    signal: int = signal.SIGKILL
    then_kill_after: float | None = None


def blow_of(chance: random.Random, shape: Shape, duration: float) -> Blow:
    """Draw one blow: most are a SIGKILL, some a warning, half of those followed by a SIGKILL."""
    event = chance.choice(EVENTS)
    span = {"clock": duration, "head": 0.15, "plan": 0.05, "aggregate": 0.02, "aggregated": 0.1}.get(event, 0.01)
    size = shape.tasks * shape.repeats
    count = chance.randint(1, chance.choice((3, 10, size))) if event in ("request", "reply") else 1
    kill = chance.random() < 0.7
    number = signal.SIGKILL if kill else chance.choice(WARNINGS)
    then = chance.uniform(0, 0.06) if not kill and chance.random() < 0.5 else None
    return Blow(event, count, chance.uniform(0, span), int(number), then)


@dataclass(frozen=True)
class Session:
    """How one process's stay in the run ended."""

    code: int
    blow: Blow | None
    struck: bool
    seconds: float

    @property
    def killed(self) -> bool:
        return self.struck and self.code == -signal.SIGKILL

    @property
    def orderly(self) -> bool:
        """Whether the process ended itself."""
        return self.code >= 0


def told(port: int, path: str, said: dict) -> None:
    """Tell the witness something about a slot."""
    with closing(HTTPConnection("127.0.0.1", port, timeout=60)) as connection:
        connection.request("POST", f"/control/{path}", json.dumps(said))
        connection.getresponse().read()


@dataclass
class Round:
    """One round on one slot."""

    seed: int
    port: int
    base: Path
    launcher: Launcher
    shape: Shape = field(default_factory=Shape)
    faults: bool = True
    violations: list[str] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    before: dict[str, bytes] = field(default_factory=dict)
    seen: claims.Witness = field(default_factory=lambda: claims.Witness([]))

    def __post_init__(self) -> None:
        self.folder, self.log, self.name = self.base / "out", self.base / "server.log", f"round-{self.seed}"

    @property
    def output(self) -> Path:
        """The run's results."""
        return self.folder / claims.RESULTS

    def begin(self) -> None:
        """Write the input, and tell the witness."""
        self.base.mkdir(parents=True)
        stamps = {"agent_ref": {"name": "adder"}, "round": self.name}
        rows = [{"responses_create_params": {"input": f"add {n} and {n}"}} | stamps for n in range(self.shape.tasks)]
        (self.base / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        told(self.port, "play", {"name": self.name, "seed": self.seed, "faults": self.faults, "log": str(self.log)})

    def play(self, blows: Sequence[Blow | None] = ()) -> None:
        """Play the round: these blows, one a session, then resumes until nothing is owed."""
        self.begin()
        for blow in blows:
            if not self.over:
                self.session(blow)
        self.finish()

    def finish(self) -> None:
        """Resume until nothing is owed, and judge the end."""
        for _ in range(MOST_RESUMES):
            if self.over:
                break
            self.session(None)
        if not self.violations:
            self._judge_the_end()
        told(self.port, "end", {"name": self.name})

    @property
    def over(self) -> bool:
        """Whether nothing is owed any more, or a claim failed."""
        return bool(self.violations) or (bool(self.sessions) and self.sessions[-1].code == 0)

    def session(self, blow: Blow | None) -> Session:
        """Run one process to its end, with `blow` in its way, and make the claims."""
        number, started = len(self.sessions), time.monotonic()
        out, err = self.base / f"{number}.out", self.base / f"{number}.err"
        process = self.launcher.start(self._arguments(), out, err)
        if blow is not None:
            self._aim(process, blow)
        self._wait_for(process)
        told(self.port, "arm", {})
        code, witness = process.reaped(), self._witness()
        struck = len(witness.signals) > len(self.seen.signals)
        session = Session(code, blow, struck, time.monotonic() - started)
        self.sessions.append(session)
        self._judge(session, process.pid, witness)
        return session

    def _arguments(self) -> list[str]:
        arguments = ["eval", "run", "--no-serve", f"+head_server.port={self.port}"]
        arguments += ["-i", str(self.base / "in.jsonl"), "-o", str(self.output), "--json"]
        arguments += ["--num-repeats", str(self.shape.repeats), "--concurrency", str(self.shape.lanes)]
        arguments += ["--resume"] if self.sessions else []
        return arguments + (["--retry-for", "20"] if knows("--retry-for", "eval", "run", "--help") else [])

    def _aim(self, process: Process, blow: Blow) -> None:
        if blow.event == "plan":
            while not (self.folder / claims.PLAN).exists() and not process.has_ended():
                time.sleep(0.001)
        event = "armed" if blow.event in ("clock", "plan") else blow.event
        said = {"pid": process.pid, "event": event, "count": blow.count, "delay": blow.delay}
        told(self.port, "arm", said | {"signal": int(blow.signal), "then_kill_after": blow.then_kill_after})

    def _wait_for(self, process: Process) -> None:
        until = time.monotonic() + GRACE
        while not process.has_ended():
            if time.monotonic() > until:
                self._violated([f"no end within {GRACE:.0f} s"])
                os.kill(process.pid, signal.SIGKILL)
                until += GRACE
            time.sleep(0.002)

    def _witness(self) -> claims.Witness:
        return claims.Witness.of_log(self.log.read_bytes())

    def _violated(self, sentences: Iterable[str]) -> None:
        found = list(sentences)
        shown = found[:SHOWN] + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])
        self.violations += [f"seed {self.seed}, session {len(self.sessions)}: {text}" for text in shown]

    def _judge(self, session: Session, pid: int, witness: claims.Witness) -> None:
        files = claims.files_in(self.folder)
        self._violated(self._ending(session))
        self._violated(claims.only_appended(self.before, files, sent=bool(self.seen.requests)))
        self._violated(claims.well_formed(files))
        self._violated(claims.sent_once(witness))
        self._violated(claims.sent_after_reservation(files, witness))
        self._violated(claims.results_are_the_servers(files, witness))
        self._violated(claims.results_are_right(files))
        self._violated(claims.nothing_paid_twice(self.before, self.seen.asked(), witness))
        if session.orderly:
            self._violated(claims.finished_is_kept(files, witness.replied - self.seen.replied))
        self._violated(f"process {left} of the session is left" for left in in_session(pid))
        self.before, self.seen = files, witness

    def _ending(self, session: Session) -> Iterator[str]:
        number = session.blow.signal if session.struck and session.blow else None
        ends = {-number, 128 + number, -signal.SIGKILL} if number is not None else set()
        if number == signal.SIGINT and self._was_not_opened():
            ends.add(1)  # an interpreter that has not reached its program yet ends so
        if session.code not in ENDS | ends:
            said = (self.base / f"{len(self.sessions) - 1}.err").read_text(errors="replace")[-300:]
            yield f"exit code {session.code} after {session.blow}: {said}"

    def _was_not_opened(self) -> bool:
        """Whether the log is as the session before left it."""
        return claims.files_in(self.folder).get(claims.LOG) == self.before.get(claims.LOG)

    def _judge_the_end(self) -> None:
        if self.sessions[-1].code != 0:
            self._violated([f"still no exit code 0 after {MOST_RESUMES} resumes"])
        self._violated(claims.all_scored(self.before, self.shape.keys))
        self._violated(claims.mean_is(self.before, mean_reward(self.shape.tasks, self.shape.repeats)))
        code, said = self.status()
        if said is not None and (code or said["outstanding"] or said["succeeded"] != len(self.shape.keys)):
            self._violated([f"status exits with {code} and says {json.dumps(said)[:400]}"])

    def status(self) -> tuple[int, dict | None]:
        """Return what `gym eval status` ends with and says; None where there is no such verb."""
        if not knows("status", "eval", "--help"):
            return 0, None
        out, err = self.base / "status.out", self.base / "status.err"
        for old in (out, err):
            old.unlink(missing_ok=True)
        process = self.launcher.start(["eval", "status", str(self.output), "--json"], out, err)
        self._wait_for(process)
        code = process.reaped()
        try:
            return code, json.loads(out.read_bytes())
        except ValueError:
            self._violated([f"status exits with {code}: {err.read_text(errors='replace')[-300:]}"])
            return code, None


def in_session(leader: int) -> list[int]:
    """Return the processes of the session that `leader` led."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3]) == leader:
                found.append(int(entry.name))
    return found

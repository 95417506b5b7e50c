"""The kill campaign: real runs, killed at random instants and resumed until nothing is owed.

Rules:
* A round is decided by its seed: rows, faults, and when which signal falls.
* The witness is a server in a process of its own; claims are made on its log and on the files, after every death.
* A violation keeps the round's folder and names it.

Run: make crash N=500
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.client import HTTPConnection
from pathlib import Path
from typing import Final

from crash import claims
from crash.script import mean_reward

TASKS: Final = 50
REPEATS: Final = 2
KEYS: Final = {(task, rollout) for task in range(TASKS) for rollout in range(REPEATS)}
CAP: Final = 20
MOST_RESUMES: Final = 15
SHOWN: Final = 3
MOST_BAD_ROUNDS: Final = 10
GRACE: Final = 60.0
HERE: Final = Path(__file__).parent
FOLDERS: Final = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
ENVIRONMENT: Final = os.environ | {"PYTHONPATH": FOLDERS, "NEMO_GYM_MAX_ROLLOUT_ATTEMPTS": str(CAP)}
ENDS: Final = {0, 3}
EVENTS: Final = ("clock", "head", "plan", "request", "request", "reply", "reply", "aggregate", "aggregated")
WARNINGS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)


@dataclass(frozen=True)
class Blow:
    """When which signal falls."""

    event: str
    count: int
    delay: float
    signal: int
    then_kill_after: float | None


def blow_of(chance: random.Random, duration: float) -> Blow:
    """Draw one blow: most are a SIGKILL, some a warning, half of those followed by a SIGKILL."""
    event = chance.choice(EVENTS)
    span = {"clock": duration, "head": 0.15, "plan": 0.05, "aggregate": 0.02, "aggregated": 0.1}.get(event, 0.01)
    count = chance.randint(1, chance.choice((3, 10, len(KEYS)))) if event in ("request", "reply") else 1
    kill = chance.random() < 0.7
    number = signal.SIGKILL if kill else chance.choice(WARNINGS)
    then = chance.uniform(0, 0.06) if not kill and chance.random() < 0.5 else None
    return Blow(event, count, chance.uniform(0, span), int(number), then)


@dataclass
class Count:
    """What a campaign came to."""

    rounds: int = 0
    sessions: int = 0
    killed: int = 0
    warned: int = 0
    bad_rounds: int = 0
    by_event: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def told(self) -> str:
        """Return the counts in a line."""
        events = ", ".join(f"{name} {count}" for name, count in sorted(self.by_event.items()))
        return (
            f"{self.rounds} rounds, {self.sessions} sessions, {self.killed} killed ({events}), "
            f"{self.warned} ended by a warning; {len(self.violations)} violations in {self.bad_rounds} rounds"
        )


class Server:
    """The witness's process."""

    def __init__(self, slots: int) -> None:
        command = [sys.executable, "-m", "crash.server", str(slots)]
        self.process = subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        self.ports: list[int] = json.loads(self.process.stdout.readline())

    def close(self) -> None:
        """End the server."""
        self.process.communicate(timeout=20)


def told(port: int, path: str, said: dict) -> None:
    """Tell the server something about a slot."""
    connection = HTTPConnection("127.0.0.1", port, timeout=20)
    with closing(connection):
        connection.request("POST", f"/control/{path}", json.dumps(said))
        connection.getresponse().read()


@dataclass
class Session:
    """One process's stay in the run."""

    code: int
    blow: Blow | None
    struck: bool

    @property
    def killed(self) -> bool:
        return self.struck and self.code == -signal.SIGKILL


@dataclass
class Played:
    """One round on one slot."""

    seed: int
    port: int
    base: Path
    faults: bool
    duration: float
    violations: list[str] = field(default_factory=list)
    sessions: list[Session] = field(default_factory=list)
    asked: Counter[claims.Key] = field(default_factory=Counter)
    before: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)  # noqa: S311  instants, no secrets
        self.folder, self.log = self.base / "out", self.base / "server.log"
        self.name = f"round-{self.seed}"

    def play(self, blows: int | None = None) -> None:
        """Play the round: so many blows, then resumes until nothing is owed."""
        self.base.mkdir(parents=True)
        rows = [
            {
                "responses_create_params": {"input": f"add {n} and {n}"},
                "agent_ref": {"name": "adder"},
                "round": self.name,
            }
            for n in range(TASKS)
        ]
        (self.base / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        told(self.port, "play", {"name": self.name, "seed": self.seed, "faults": self.faults, "log": str(self.log)})
        for _ in range(self.chance.randint(1, 4) if blows is None else blows):
            if self._over:
                break
            self._session(blow_of(self.chance, self.duration))
        for _ in range(MOST_RESUMES):
            if self._over:
                break
            self._session(None)
        if not self.violations:
            self._judge_the_end()
        told(self.port, "end", {"name": self.name})

    @property
    def _over(self) -> bool:
        return bool(self.violations) or (bool(self.sessions) and self.sessions[-1].code == 0)

    def _judge_the_end(self) -> None:
        if self.sessions[-1].code != 0:
            self._violated([f"still no exit code 0 after {MOST_RESUMES} resumes"])
        files, witness = claims.files_in(self.folder), self._witness()
        self._violated(claims.all_scored(files, KEYS))
        self._violated(claims.finished_is_kept(files, witness))
        self._violated(claims.mean_is(files, mean_reward(TASKS, REPEATS)))
        self._violated(self._owed())

    def _witness(self) -> claims.Witness:
        return claims.Witness.of_log(self.log.read_bytes())

    def _violated(self, sentences: Iterator[str] | list[str]) -> None:
        found = list(sentences)
        shown = found[:SHOWN] + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])
        self.violations += [f"seed {self.seed}, session {len(self.sessions)}: {text}" for text in shown]

    def _session(self, blow: Blow | None) -> Session:
        command = [*gym(), "eval", "run", "--no-serve", f"+head_server.port={self.port}", "+head_server.host=127.0.0.1"]
        command += ["-i", str(self.base / "in.jsonl"), "-o", str(self.folder / claims.RESULTS)]
        command += ["--num-repeats", str(REPEATS), "--concurrency", "64", "--json"]
        command += ["--resume"] if self.sessions else []
        command += ["--retry-for", "20"] if knows("--retry-for", "eval", "run", "--help") else []
        number = len(self.sessions)
        with (self.base / f"{number}.out").open("wb") as out, (self.base / f"{number}.err").open("wb") as err:
            process = subprocess.Popen(command, env=ENVIRONMENT, stdout=out, stderr=err, start_new_session=True)
            struck = self._struck(process, blow)
        session = Session(process.returncode, blow, struck)
        self.sessions.append(session)
        self._judge(session, process.pid)
        return session

    def _struck(self, process: subprocess.Popen, blow: Blow | None) -> bool:
        """Wait for the end of `process`, with `blow` in its way; return whether the blow fell."""
        before = len(self._witness().signals) if self.log.exists() else 0
        if blow is not None:
            self._aim(process.pid, blow)
        ended = _ended(process.pid)
        told(self.port, "arm", {})
        if not ended:
            process.kill()
            self._violated([f"session {len(self.sessions) + 1} did not end within {GRACE} s of its start"])
        process.wait()
        return len(self._witness().signals) > before

    def _aim(self, pid: int, blow: Blow) -> None:
        event = blow.event
        if event == "plan":
            _until_there(pid, self.folder / claims.PLAN)
        if event in ("clock", "plan"):
            event = "armed"
        said = {"pid": pid, "event": event, "count": blow.count, "delay": blow.delay}
        told(self.port, "arm", said | {"signal": blow.signal, "then_kill_after": blow.then_kill_after})

    def _judge(self, session: Session, pid: int) -> None:
        files, witness = claims.files_in(self.folder), self._witness()
        self._violated(_ending(session))
        self._violated(claims.only_appended(self.before, files, sent=bool(self.asked)))
        self._violated(claims.well_formed(files))
        self._violated(claims.sent_once(witness))
        self._violated(claims.sent_after_reservation(files, witness))
        self._violated(claims.results_are_the_servers(files, witness))
        self._violated(claims.results_are_right(files))
        self._violated(claims.nothing_paid_twice(self.before, self.asked, witness))
        self._violated(f"process {left} of the session is left" for left in _in_session(pid))
        self.before, self.asked = files, witness.asked()

    def _owed(self) -> Iterator[str]:
        if not knows("status", "eval", "--help"):
            return
        command = [*gym(), "eval", "status", "--json", str(self.folder / claims.RESULTS)]
        asked = subprocess.run(command, env=ENVIRONMENT, capture_output=True, check=False, timeout=60)
        if asked.returncode != 0:
            yield f"status exits with {asked.returncode}: {asked.stdout.decode()[-300:]} {asked.stderr.decode()[-300:]}"


def _ending(session: Session) -> Iterator[str]:
    if session.code in ENDS:
        return
    number = session.blow.signal if session.struck and session.blow else None
    if number is None or session.code not in (-number, 128 + number, -signal.SIGKILL):
        yield f"exit code {session.code} after {session.blow}"


def _ended(pid: int) -> bool:
    """Wait until `pid` ended, and leave it to be reaped; False when it did not within `GRACE`."""
    until = time.monotonic() + GRACE
    while time.monotonic() < until:
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
            return True
        time.sleep(0.002)
    return False


def _until_there(pid: int, path: Path) -> None:
    while not path.exists() and not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG):
        time.sleep(0.001)


def _in_session(leader: int) -> list[int]:
    """Return the processes of the session that `leader` led."""
    found = []
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            if int((entry / "stat").read_text().rsplit(")", 1)[1].split()[3]) == leader:
                found.append(int(entry.name))
    return found


def gym() -> list[str]:
    return [sys.executable, "-m", "rollbook.cli"]


@cache
def knows(word: str, *arguments: str) -> bool:
    """Whether the command line's own help names `word`."""
    asked = subprocess.run([*gym(), *arguments], env=ENVIRONMENT, capture_output=True, check=False, timeout=60)
    return asked.returncode == 0 and word in asked.stdout.decode().split()


@dataclass
class Campaign:
    """Rounds on every slot until enough processes were killed, or the time is over."""

    kills: int
    seconds: float
    faults: bool
    first: int
    base: Path
    count: Count = field(default_factory=Count)

    def __post_init__(self) -> None:
        self._lock, self._next, self._until = threading.Lock(), self.first, time.monotonic() + self.seconds

    def on(self, port: int, duration: float) -> None:
        """Play rounds on one slot."""
        while (seed := self._another()) is not None:
            played = Played(seed, port, self.base / str(seed), self.faults, duration)
            played.play()
            with self._lock:
                self._add(played)

    def _another(self) -> int | None:
        with self._lock:
            over = self.count.killed >= self.kills or self.count.bad_rounds >= MOST_BAD_ROUNDS
            if over or time.monotonic() > self._until:
                return None
            self._next += 1
            return self._next - 1

    def _add(self, played: Played) -> None:
        count = self.count
        count.rounds += 1
        count.sessions += len(played.sessions)
        for session in played.sessions:
            if session.killed and session.blow:
                count.killed += 1
                count.by_event[session.blow.event] += 1
            elif session.struck:
                count.warned += 1
        count.violations += played.violations
        count.bad_rounds += bool(played.violations)
        if not played.violations:
            shutil.rmtree(played.base)


@contextmanager
def serving(slots: int) -> Iterator[Server]:
    """Run the witness for as long as the block lasts."""
    server = Server(slots)
    try:
        yield server
    finally:
        server.close()


def fought(kills: int, *, seconds: float, faults: bool = True, first: int = 0, slots: int = 2) -> Count:
    """Play a campaign and return its counts; folders of rounds with violations stay."""
    base = Path(tempfile.mkdtemp(prefix="rollbook-crash-"))
    campaign = Campaign(kills, seconds, faults, first, base)
    _ = knows("--retry-for", "eval", "run", "--help"), knows("status", "eval", "--help")
    with serving(slots) as server:
        started = time.monotonic()
        quiet = Played(-1, server.ports[0], base / "quiet", faults=False, duration=0.0)
        quiet.play(blows=0)
        duration = time.monotonic() - started
        campaign.count.violations += [f"undisturbed: {text}" for text in quiet.violations]
        threads = [threading.Thread(target=campaign.on, args=(port, duration)) for port in server.ports]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if campaign.count.violations:
        campaign.count.violations.append(f"the folders of those rounds are in {base}")
    else:
        shutil.rmtree(base)
    return campaign.count


def main() -> int:
    """Play a campaign and print what it came to."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("-n", "--kills", type=int, default=500)
    reader.add_argument("--seconds", type=float, default=7200.0)
    reader.add_argument("--seed", type=int, default=0, help="the first round's seed")
    reader.add_argument("--no-faults", action="store_true")
    asked = reader.parse_args()
    count = fought(asked.kills, seconds=asked.seconds, faults=not asked.no_faults, first=asked.seed)
    print("\n".join([*count.violations, count.told()]))  # noqa: T201  a script's own table
    return 1 if count.violations else 0


if __name__ == "__main__":
    sys.exit(main())

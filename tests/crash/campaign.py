"""The kill campaign: real runs, killed at random instants and resumed until nothing is owed.

Rules:
* A round is decided by its seed: rows, faults, and when which signal falls.
* The witness is a server in a process of its own; claims are made on its log and on the files, after every death.
* A violation keeps the round's folder and names it.

Run: make crash N=500
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from crash.launching import ENVIRONMENT, Forked, Fresh, knows
from crash.one_round import Round, Shape, blow_of

MOST_BAD_ROUNDS: Final = 10
FRESH_SHARE: Final = 0.3
SHAPE: Final = Shape()


@dataclass
class Count:
    """What a campaign came to."""

    rounds: int = 0
    bad_rounds: int = 0
    sessions: int = 0
    killed: int = 0
    warned: int = 0
    by_event: Counter[str] = field(default_factory=Counter)
    violations: list[str] = field(default_factory=list)

    def add(self, played: Round) -> None:
        """Count a round."""
        self.rounds += 1
        self.bad_rounds += bool(played.violations)
        self.sessions += len(played.sessions)
        self.violations += played.violations
        for session in played.sessions:
            if session.killed and session.blow:
                self.killed += 1
                self.by_event[session.blow.event] += 1
            else:
                self.warned += session.struck

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
        self.process.communicate(timeout=60)


@contextmanager
def serving(slots: int) -> Iterator[Server]:
    """Run the witness for as long as the block lasts."""
    server = Server(slots)
    try:
        yield server
    finally:
        server.close()


@contextmanager
def forking() -> Iterator[Forked]:
    """Have processes to fork from for as long as the block lasts."""
    forked = Forked()
    try:
        yield forked
    finally:
        forked.close()


@dataclass
class Campaign:
    """Rounds on every slot until enough processes were killed, or one was and the time is over."""

    kills: int
    seconds: float
    faults: bool
    first: int
    base: Path
    count: Count = field(default_factory=Count)

    def __post_init__(self) -> None:
        self._lock, self._next, self._until = threading.Lock(), self.first, time.monotonic() + self.seconds

    def on(self, port: int) -> None:
        """Play rounds on one slot; some start from nothing, most are forked."""
        with forking() as forked:
            calm = {launcher: self._undisturbed(port, launcher) for launcher in (Fresh(), forked)}
            while (seed := self._another()) is not None:
                chance = random.Random(seed)  # noqa: S311  instants, no secrets
                launcher = next(iter(calm)) if chance.random() < FRESH_SHARE else forked
                self._play(
                    Round(seed, port, self.base / str(seed), launcher, SHAPE, self.faults), chance, calm[launcher]
                )

    def _play(self, played: Round, chance: random.Random, duration: float) -> None:
        blows = [blow_of(chance, SHAPE, duration) for _ in range(chance.randint(1, 4))]
        played.play(blows)
        self._add(played)

    def _undisturbed(self, port: int, launcher: Fresh | Forked) -> float:
        """Return how long a session takes that nobody strikes."""
        name = f"undisturbed-{port}-{type(launcher).__name__}"
        quiet = Round(-1, port, self.base / name, launcher, SHAPE, faults=False)
        quiet.play()
        self._add(quiet)
        return quiet.sessions[0].seconds

    def _another(self) -> int | None:
        with self._lock:
            over = self.count.killed >= self.kills or self.count.bad_rounds >= MOST_BAD_ROUNDS
            if over or (self.count.killed and time.monotonic() > self._until):
                return None
            self._next += 1
            return self._next - 1

    def _add(self, played: Round) -> None:
        with self._lock:
            self.count.add(played)
        if not played.violations:
            shutil.rmtree(played.base)


def fought(kills: int, *, seconds: float, faults: bool = True, first: int = 0, slots: int = 2) -> Count:
    """Play a campaign and return its counts; folders of rounds with violations stay."""
    base = Path(tempfile.mkdtemp(prefix="rollbook-crash-"))
    campaign = Campaign(kills, seconds, faults, first, base)
    _ = knows("--retry-for", "eval", "run", "--help"), knows("status", "eval", "--help")
    with serving(slots) as server:
        threads = [threading.Thread(target=campaign.on, args=(port,)) for port in server.ports]
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
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
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

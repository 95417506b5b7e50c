"""Processes of the command line: started from nothing, or forked from one that has it loaded.

Rules:
* An ended process is known before it is reaped, so that no signal meets a pid of somebody else.
"""

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final, Protocol

HERE: Final = Path(__file__).parent
CAP: Final = 20
FOLDERS: Final = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
ENVIRONMENT: Final = os.environ | {"PYTHONPATH": FOLDERS, "NEMO_GYM_MAX_ROLLOUT_ATTEMPTS": str(CAP)}
GYM: Final = (sys.executable, "-m", "rollbook.cli")


class Process(Protocol):
    """A started process."""

    pid: int

    def has_ended(self) -> bool:
        """Whether it ended; it is not reaped by asking."""
        ...

    def reaped(self) -> int:
        """Wait for its end and return its exit code, or minus the signal that ended it."""
        ...


class Launcher(Protocol):
    """Where processes come from."""

    def start(self, arguments: Sequence[str], out: Path, err: Path) -> Process:
        """Start the command line on `arguments`."""
        ...


class Fresh:
    """Processes that start from nothing, as a person's do."""

    def start(self, arguments: Sequence[str], out: Path, err: Path) -> Process:
        with out.open("wb") as to_out, err.open("wb") as to_err:
            return _Started(
                subprocess.Popen(
                    [*GYM, *arguments],
                    env=ENVIRONMENT,
                    stdin=subprocess.DEVNULL,
                    stdout=to_out,
                    stderr=to_err,
                    start_new_session=True,
                )
            )


class _Started:
    def __init__(self, process: subprocess.Popen) -> None:
        self._process, self.pid = process, process.pid

    def has_ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None

    def reaped(self) -> int:
        return self._process.wait()


class Forked:
    """Processes that skip what an interpreter does before the command line's first word."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "crash.zygote"]
        self._zygote = subprocess.Popen(
            command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def start(self, arguments: Sequence[str], out: Path, err: Path) -> Process:
        return _Forked(self, self.ordered({"run": list(arguments), "out": str(out), "err": str(err)})["pid"])

    def ordered(self, order: dict) -> dict:
        """Give an order and return its answer."""
        assert self._zygote.stdin is not None
        assert self._zygote.stdout is not None
        self._zygote.stdin.write(json.dumps(order) + "\n")
        self._zygote.stdin.flush()
        return json.loads(self._zygote.stdout.readline())

    def close(self) -> None:
        """End the process that forks."""
        self._zygote.communicate(timeout=60)


class _Forked:
    def __init__(self, owner: Forked, pid: int) -> None:
        self._owner, self.pid = owner, pid

    def has_ended(self) -> bool:
        stat = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8")
        return stat.rsplit(")", 1)[1].split()[0] == "Z"

    def reaped(self) -> int:
        return self._owner.ordered({"reap": self.pid})["code"]


@cache
def knows(word: str, *arguments: str) -> bool:
    """Whether the command line's own help names `word`."""
    asked = subprocess.run([*GYM, *arguments], env=ENVIRONMENT, capture_output=True, check=False, timeout=60)
    return asked.returncode == 0 and word in asked.stdout.decode().split()

"""The two implementations, each a command line in processes of its own: ours, and the field's where one is installed.

Set ROLLBOOK_INTEROP_PYTHON to the interpreter of an environment that holds `nemo-gym`; see docs/interop.md.

Rules:
* Each process has a session of its own, and is ended by its id.
* A side works in a folder of its own; what it says is kept in files there.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ports import free_port

THEIR_PYTHON = os.environ.get("ROLLBOOK_INTEROP_PYTHON")
READY_SECONDS = 600.0
SERVER_FOLDERS = (
    "environment_servers/legacy_agent",
    "environment_servers/single_agent_turn",
    "resources_servers/example_single_tool_call",
    "resources_servers/math_with_judge",
    "resources_servers/mcqa",
    "responses_api_agents/simple_agent",
    "responses_api_models/openai_model",
)


@dataclass(frozen=True)
class Said:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err

    @property
    def json(self) -> object:
        return json.loads(self.out)


class Side:
    """One implementation: its `gym`, and the folder that it is called in."""

    def __init__(self, name: str, bin_folder: Path, folder: Path, always: Sequence[str] = ()) -> None:
        self.name, self.folder, self.always = name, folder, tuple(always)
        self.gym = bin_folder / "gym"
        paths = f"{bin_folder}{os.pathsep}{os.environ.get('PATH', '')}"
        dropped = ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME")
        kept = {key: value for key, value in os.environ.items() if key not in dropped and "NEMO_GYM" not in key}
        self.environment = kept | {"PATH": paths, "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0", "RAY_USAGE_STATS_ENABLED": "0"}
        folder.mkdir(parents=True, exist_ok=True)

    def start(self, *words: object, log: Path | None = None) -> subprocess.Popen[bytes]:
        """Start `gym` with these words; its output goes to `log` and `log` with `.err`."""
        log = log or self.folder / f"{words[1]}.log"
        with log.open("wb") as out, log.with_suffix(".err").open("wb") as err:
            return subprocess.Popen(
                [str(self.gym), *map(str, words)],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=self.folder,
                env=self.environment,
                start_new_session=True,
            )

    def run(self, *words: object, seconds: float = 600.0) -> Said:
        """Run `gym` with these words to its end."""
        log = self.folder / f"{'-'.join(map(str, words[:2]))}-{time.monotonic_ns()}.log"
        process = self.start(*words, log=log)
        try:
            code = process.wait(seconds)
        finally:
            end(process, signal.SIGKILL)
        return Said(code, log.read_text(errors="replace"), log.with_suffix(".err").read_text(errors="replace"))

    @contextmanager
    def deployment(self, *words: object) -> Iterator["Head"]:
        """Keep `gym env start` up for as long as the block lasts."""
        head = Head(free_port())
        process = self.start("env", "start", *words, *self.always, *head.overrides)
        try:
            wait_for(head.is_ready, process, READY_SECONDS, self.folder / "start.err")
            yield head
        finally:
            end(process, signal.SIGINT)


@dataclass(frozen=True)
class Head:
    """Where a deployment's head server listens."""

    port: int

    @property
    def overrides(self) -> tuple[str, ...]:
        return ("+head_server.host=127.0.0.1", f"+head_server.port={self.port}")

    def get(self, path: str) -> object:
        """Return the JSON that the head server answers."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=10) as reply:
            return json.load(reply)

    def is_ready(self) -> bool:
        with contextlib.suppress(OSError):
            return self.get("/readyz") == {"status": "ok"}
        return False


def ours(folder: Path) -> Side:
    """Return our own side."""
    return Side("ours", Path(sys.executable).parent, folder)


def theirs(folder: Path) -> Side:
    """Return the field's side, whose servers all run in the one environment that ROLLBOOK_INTEROP_PYTHON names."""
    bin_folder = Path(THEIR_PYTHON or "").parent
    side = Side("theirs", bin_folder, folder, ("++skip_venv_if_present=true",))
    for server in SERVER_FOLDERS:
        link = folder / server / ".venv"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(bin_folder.parent)
    return side


def wait_for(condition: Callable[[], bool], process: subprocess.Popen[bytes], seconds: float, log: Path) -> None:
    """Return once `condition` holds while `process` lives; else say what it wrote last."""
    until = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, f"ended with {process.returncode}: {log.read_text(errors='replace')[-3000:]}"
        assert time.monotonic() < until, f"not within {seconds:.0f} s: {log.read_text(errors='replace')[-3000:]}"
        time.sleep(0.05)


def end(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal a process that was started here, and kill what is left of those that it started."""
    started = [process.pid, *_descendants(process.pid)]
    if process.poll() is None:
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(30)
    for pid in started:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    process.wait(10)


def _descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, task.read_text().split())
    return found + [further for child in found for further in _descendants(child)]

"""A program that runs another one inside of a sandbox, within a time, and makes sure that all of it is gone afterwards.

It is uploaded as a file and started there: `python -I process_supervisor.py --timeout 60 --receipt r.json -- program`.
It needs Linux, and nothing but Python's standard library.

Rules:
* Whoever is orphaned below it becomes its child, so that nothing started by the program can leave its sight.
* A stop (its time, SIGTERM, or the stop file) asks first, waits, and kills then; what the program left behind likewise.
* The receipt is written whole or not at all, and says `cleanup_confirmed` only when nobody was left.
* It ends with the program's own code; a program that was never started, because a stop came first, has code 0.

Source: servers.md §13.3, and what the agents that upload it read in its receipt.
"""

import argparse
import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

DEFAULT_CLEANUP_TIMEOUT: Final = 10.0
"""Seconds between asking what is left to end and killing it, and between killing it and giving up."""
STARTUP_S: Final = 10.0
LOOK_EVERY_S: Final = 0.05
SUBREAPER: Final = 36
NEVER_STARTED: Final = 0
PARENT_FIELD: Final = 1
"""Where the parent stands in `/proc/<pid>/stat`, counted after the name."""


def exec_timeout(*, timeout: float, cleanup_timeout: float = DEFAULT_CLEANUP_TIMEOUT) -> float:
    """Return the seconds to give a sandbox's `exec` for a supervised program: its own, the clean-ups, and a start."""
    return timeout + 4 * cleanup_timeout + STARTUP_S


class Supervisor:
    """One supervised program."""

    def __init__(self, timeout: float, cleanup_timeout: float, stop_file: "Path | None") -> None:
        self._deadline = time.monotonic() + timeout
        self._cleanup_timeout = cleanup_timeout
        self._stop_file = stop_file
        self._signalled = False
        self.timed_out = False

    def run(self, command: Sequence[str]) -> int:
        """Run `command` to its end or its stop; return its code."""
        signal.signal(signal.SIGTERM, self._on_signal)
        signal.signal(signal.SIGINT, self._on_signal)
        if self._stopped():
            return NEVER_STARTED
        program = subprocess.Popen(command, start_new_session=True)  # noqa: S603  whoever calls chose the program
        while program.poll() is None and not self._stopped():
            self.timed_out = time.monotonic() >= self._deadline
            if self.timed_out:
                break
            with suppress(subprocess.TimeoutExpired):
                program.wait(LOOK_EVERY_S)
        if program.poll() is None:
            self._ask(program)
        self.clean(program)
        code = program.poll()
        return 128 + signal.SIGKILL if code is None else 128 - code if code < 0 else code

    def clean(self, program: "subprocess.Popen[bytes]") -> None:
        """End whoever is left; some may be past asking."""
        self._until_gone(program, signal.SIGTERM)
        self._until_gone(program, signal.SIGKILL)

    def _ask(self, program: "subprocess.Popen[bytes]") -> None:
        program.terminate()
        with suppress(subprocess.TimeoutExpired):
            program.wait(self._cleanup_timeout)

    def _until_gone(self, program: "subprocess.Popen[bytes]", sent: signal.Signals) -> None:
        until = time.monotonic() + self._cleanup_timeout
        asked: set[int] = set()
        while (left := _left(program)) and time.monotonic() < until:
            for process in left:
                if sent == signal.SIGKILL or process not in asked:
                    asked.add(process)
                    with suppress(ProcessLookupError):
                        os.kill(process, sent)
            time.sleep(LOOK_EVERY_S)

    def _stopped(self) -> bool:
        return self._signalled or (self._stop_file is not None and self._stop_file.exists())

    def _on_signal(self, *_: object) -> None:
        self._signalled = True


def main(words: Sequence[str]) -> int:
    """Supervise the program that `words` name; return its exit code."""
    asked = _parsed(words)
    supervisor = Supervisor(asked.timeout, asked.cleanup_timeout, asked.stop_file)
    code, error = _supervised(supervisor, asked.command)
    left = sorted(descendants(os.getpid()))
    if left and error is None:
        error = f"still running: {left}"
    receipt = {"cleanup_confirmed": not left, "error": error, "return_code": code, "timed_out": supervisor.timed_out}
    if asked.receipt is not None:
        _write(asked.receipt, json.dumps(receipt))
    return code


def descendants(ancestor: int) -> "set[int]":
    """Return every process below `ancestor` that is not dead."""
    parents = dict(_parents())
    found: set[int] = set()
    new = {ancestor}
    while new:
        new = {process for process, parent in parents.items() if parent in new} - found
        found |= new
    return found


def _supervised(supervisor: Supervisor, command: Sequence[str]) -> "tuple[int, str | None]":
    try:
        _adopt_orphans()
        return supervisor.run(command), None
    except OSError as error:
        return 127, str(error)


def _left(program: "subprocess.Popen[bytes]") -> "set[int]":
    program.poll()
    _bury(program.pid)
    return descendants(os.getpid())


def _bury(program: int) -> None:
    """Take the codes of adopted orphans; the program's own is its Popen's to take."""
    for process, parent in _parents(dead=True):
        if parent == os.getpid() and process != program:
            with suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)


def _parents(*, dead: bool = False) -> "Iterator[tuple[int, int]]":
    for name in os.listdir("/proc"):  # noqa: PTH208  this may be thousands of entries
        with suppress(OSError, ValueError, IndexError):
            fields = Path(f"/proc/{int(name)}/stat").read_text(errors="replace").rpartition(")")[2].split()
            if (fields[0] in "ZX") == dead:
                yield int(name), int(fields[PARENT_FIELD])


def _adopt_orphans() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.prctl(SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "this kernel gives no orphans away")


def _write(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    beside.write_text(text)
    beside.replace(path)


def _parsed(words: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Run a program within a time, and end all that it started.")
    parser.add_argument("--timeout", type=float, required=True, help="seconds for the program")
    parser.add_argument(
        "--cleanup-timeout", type=float, default=DEFAULT_CLEANUP_TIMEOUT, help="seconds for each clean-up"
    )
    parser.add_argument("--stop-file", type=Path, help="stop when this file exists")
    parser.add_argument("--receipt", type=Path, help="where to say how it ended, as JSON")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="-- and the program with its arguments")
    asked = parser.parse_args(words)
    asked.command = asked.command[1:] if asked.command[:1] == ["--"] else asked.command
    if not asked.command:
        parser.error("name the program after --")
    return asked


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

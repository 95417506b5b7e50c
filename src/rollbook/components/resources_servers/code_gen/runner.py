"""The program that runs a solution, test by test.

Rules:
* It runs inside the sandbox, on the standard library alone. It is given inputs and never an expected output.
* Each test has a process of its own, which is killed at the end of its time; what it leaves in memory is gone.
* A solution finds the names that solutions are used to, those of the modules below, and real input and output.
"""

import contextlib
import json
import os
import resource
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

MOST_ASKED: Final = 1 << 28
MOST_ERROR: Final = 1000
ERROR_BYTES: Final = 13_000
"""What two such texts are in JSON at most."""
MOST_OPEN: Final = 1024
MOST_RECURSION: Final = 50_000
STEP_S: Final = 0.005
STARS: Final = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json "
    "builtins typing"
)
MODULES: Final = (
    "string re datetime collections heapq bisect copy math random statistics itertools functools operator io sys json"
)
FAILED: Final = 70


def known_names() -> dict[str, Any]:
    """Return the names that a solution finds."""
    names: dict[str, Any] = {"__name__": "__main__", "__builtins__": __builtins__}
    lines = [f"from {name} import *" for name in STARS.split()] + [f"import {name}" for name in MODULES.split()]
    exec("\n".join(lines), names)  # noqa: S102  fixed words
    return names


def solved(code: str, names: dict[str, Any]) -> None:
    """Run a solution that reads its input and prints its output."""
    with contextlib.suppress(SystemExit):
        exec(compile(code, "<solution>", "exec"), names)  # noqa: S102  what this program is for


def called(code: str, names: dict[str, Any], function: str, lines: str) -> str:
    """Return as JSON what the solution's function returns for its arguments, a line of JSON each."""
    exec(compile(code, "<solution>", "exec"), names)  # noqa: S102  what this program is for
    owner = names["Solution"]() if "Solution" in names else None
    method: Callable[..., Any] = names[function] if owner is None else getattr(owner, function)
    return json.dumps(method(*[json.loads(line) for line in lines.split("\n")]))


class Told:
    """Writes what the block raised to the file of errors; whatever that is ends the test's process."""

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        """Write."""
        del kind, trace
        if error is not None:
            put("error", json.dumps([repr(error)[:MOST_ERROR], traceback.format_exc()[-MOST_ERROR:]]))


def child(asked: dict[str, Any], test: dict[str, Any], names: dict[str, Any]) -> None:
    """Run one test in this process, which ends with it."""
    code = FAILED
    try:
        with Told():
            os.setsid()
            seconds = int(test["seconds"]) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
            os.closerange(3, MOST_OPEN)
            place("in", 0, os.O_RDONLY)
            place("out", 1, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            streams()
            put_out(asked, test, names)
            code = 0
    finally:
        os._exit(code)


def put_out(asked: dict[str, Any], test: dict[str, Any], names: dict[str, Any]) -> None:
    """Run the solution, and have what it puts out written."""
    if asked["function"]:
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  open as long as the process
        write(1, called(asked["code"], names, asked["function"], test["input"]))
        return
    solved(asked["code"], names)
    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    sys.stdout.flush()


def place(name: str, stream: int, flags: int) -> None:
    """Open a file in the place of a standard stream."""
    opened = os.open(name, flags, 0o600)
    os.dup2(opened, stream)
    os.close(opened)


def streams() -> None:
    """Make the streams of Python anew, for the files that stand in their places."""
    sys.stdin = open(0, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115  open as long as the process
    sys.stdout = open(1, "w", encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115  open as long as the process
    sys.argv = ["solution.py"]
    sys.setrecursionlimit(MOST_RECURSION)


def write(descriptor: int, text: str) -> None:
    """Write the whole of a text."""
    with open(descriptor, "wb", closefd=False) as file:
        file.write(text.encode("utf-8", "replace"))


def put(name: str, text: str) -> None:
    """Write a file."""
    Path(name).write_bytes(text.encode("utf-8", "replace"))


def taken(name: str, most: int) -> str:
    """Return the beginning of a file, empty without one."""
    try:
        with Path(name).open("rb") as file:
            return file.read(most).decode("utf-8", "replace")
    except OSError:
        return ""


def waited(pid: int, seconds: float) -> int | None:
    """Return how a process ended; None when its time is up."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        time.sleep(STEP_S)
    return None


def end(pid: int, *, running: bool) -> None:
    """Kill a test's process and what it started and left in its group."""
    with contextlib.suppress(OSError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.kill(pid, signal.SIGKILL)
    if running:
        os.waitpid(pid, 0)


def tested(asked: dict[str, Any], test: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """Return how one test ended: `code` of its process, null when its time was up, and what it put out."""
    for name in ("out", "error"):
        with contextlib.suppress(OSError):
            Path(name).unlink()
    put("in", "" if asked["function"] else test["input"])
    began = time.monotonic()
    pid = os.fork()
    if pid == 0:
        child(asked, test, names)
    code = waited(pid, test["seconds"])
    took = time.monotonic() - began
    end(pid, running=code is None)
    output = taken("out", test["most"])
    return {"code": code, "output": output, "error": taken("error", ERROR_BYTES), "seconds": took}


def main() -> None:
    """Answer until nobody asks: first the solution comes, then test after test."""
    line = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    names = known_names()
    sys.set_int_max_str_digits(0)
    line.sendall(b'{"ready": true}\n')
    requests = line.makefile("rb")
    asked = json.loads(requests.readline(MOST_ASKED))
    line.sendall(b'{"ready": true}\n')
    while test := requests.readline(MOST_ASKED):
        line.sendall(json.dumps(tested(asked, json.loads(test), names)).encode() + b"\n")


if __name__ == "__main__":
    main()

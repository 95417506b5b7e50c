"""The command line in a process of its own, for signals and kills.

Rules:
* Processes are forked from one that has the command line loaded; each leads a group, of which nothing outlives it.
* Nothing sleeps: a test waits for words that were said, or for the end.
"""

import contextlib
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import NamedTuple

LONGEST_S = 300.0
FORKING = multiprocessing.get_context("forkserver")
FORKING.set_forkserver_preload(["rollbook.cli.eval_run", "rollbook.cli.eval_session", "rollbook.cli.eval_settings"])


class Ended(NamedTuple):
    """How a process ended and what it had printed."""

    code: int
    out: str
    err: str


class Started:
    """A running command, which is killed after `longest` seconds."""

    def __init__(self, words: list[str], first: Callable[[], None] | None = None, longest: float = LONGEST_S) -> None:
        pipes = [FORKING.Pipe(duplex=False) for _ in range(2)]
        self._process = FORKING.Process(target=_become, args=([end for _, end in pipes], words, first))
        self._process.start()
        for _, end in pipes:
            end.close()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self._out, self._err = (os.fdopen(os.dup(end.fileno()), encoding="utf-8") for end, _ in pipes)
        self._heard: list[str] = []
        self._watchdog = threading.Timer(longest, self._process.kill)
        self._watchdog.start()

    def send(self, number: int) -> None:
        """Send a signal."""
        os.kill(self.pid, number)

    def hear(self, words: str) -> str:
        """Wait until these words are said on standard error, and return the line that says them."""
        for line in self._err:
            self._heard.append(line)
            if words in line:
                return line
        raise AssertionError(f"{words!r} was never said: {self._heard}")

    def ended(self) -> Ended:
        """Wait for the end."""
        with self._out, self._err:
            said = "".join([*self._heard, *self._err]), self._out.read()
        self._process.join()
        self._watchdog.cancel()
        err, out = said
        assert "Traceback" not in out + err
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, 0)
            raise AssertionError("a child of the command is left behind")
        assert self._process.exitcode is not None
        return Ended(self._process.exitcode, out, err)


def _become(pipes: list[Connection], words: list[str], first: Callable[[], None] | None) -> None:
    """Turn this process into the command."""
    os.setsid()
    for descriptor, pipe in zip((1, 2), pipes, strict=True):
        os.dup2(pipe.fileno(), descriptor)
        pipe.close()
    sys.stdout, sys.stderr = (os.fdopen(number, "w", buffering=1, closefd=False) for number in (1, 2))
    sys.argv = ["gym", *words]
    if first is not None:
        first()
    from rollbook.cli.entry import main  # noqa: PLC0415  what came first may have replaced what it is made of

    main(words)

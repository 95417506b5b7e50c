"""Processes that check texts against schemas: few, kept, and killed when one takes too long.

Rules:
* A pattern in a schema, or a text of megabytes, may take for ever: the server goes on meanwhile.
* The event loop never waits for a process: threads do. No process outlives the pool.
"""

import asyncio
import importlib.util
import json
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Final

from resources_servers.math_with_judge.workers import Worker
from resources_servers.structured_outputs.questions import Question
from rollbook import MissingPackageError

PROGRAM: Final = Path(__file__).with_name("worker.py")


def require_library() -> None:
    """Make sure that the validating library is there, without loading it.

    Raises:
        MissingPackageError: it is not installed.

    """
    if importlib.util.find_spec("jsonschema") is None:
        raise MissingPackageError(
            "resources_servers/structured_outputs needs the package 'jsonschema', which is not installed; "
            "run: pip install 'rollbook[schemas]'"
        )


class Checker(Worker):
    """One process. It is used by one thread at a time."""

    def reply(self, line: bytes, seconds: float) -> bytes | None:
        """Return the reply to a line, or None when there was none in time; the process is of no use then."""
        deadline = time.monotonic() + seconds
        try:
            self._input.write(line)
            self._input.flush()
        except (OSError, ValueError):  # the process ended, or the pool did
            return None
        return self._line(deadline)


class CheckerPool:
    """Asks at most as many processes as there are processors, each question for at most `seconds`."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(os.cpu_count() or 1, "structured_outputs")
        self._lock = threading.Lock()
        self._idle: list[Checker] = []
        self._busy: set[Checker] = set()
        self._closed = False

    async def ask(self, question: Question) -> dict[str, str] | None:
        """Return what is wrong, as the fields of a fault, or nothing.

        Raises:
            TimeoutError: there was none in time, or the process died of the question.
            ServingError: no process can be started.

        """
        line = json.dumps(asdict(question) | {"seconds": self._seconds}).encode() + b"\n"
        reply = await asyncio.get_running_loop().run_in_executor(self._threads, self._reply, line)
        if reply is None:
            raise TimeoutError(f"not decided within {self._seconds:g} seconds")
        fault: dict[str, str] | None = json.loads(reply)
        return fault

    async def close(self) -> None:
        """End all processes, those at work included."""
        await asyncio.to_thread(self._close)

    def _reply(self, line: bytes) -> bytes | None:
        checker = self._taken()
        reply = None
        try:
            reply = checker.reply(line, self._seconds)
        finally:
            self._give_back(checker, usable=reply is not None)
        return reply

    def _taken(self) -> Checker:
        with self._lock:
            checker = self._idle.pop() if self._idle else None
            if checker is not None and checker.is_alive:
                self._busy.add(checker)
                return checker
        if checker is not None:
            checker.kill()
        started = Checker(PROGRAM)
        with self._lock:
            self._busy.add(started)
            if self._closed:
                started.stop()
        return started

    def _give_back(self, checker: Checker, *, usable: bool) -> None:
        with self._lock:
            self._busy.discard(checker)
            keep = usable and not self._closed
            if keep:
                self._idle.append(checker)
        if not keep:
            checker.kill()

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            for checker in self._busy:
                checker.stop()
        for checker in idle:
            checker.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)

"""Processes that compare answers: few, kept, and killed when one takes too long.

Rules:
* A comparison that runs out of time scores nothing, and its process is replaced.
* The event loop never waits for a process: threads do, one for each process.
* No process outlives the pool, and none outlives the program: its input ends when we do.

Source: servers.md §7.3 (2).
"""

import asyncio
import contextlib
import importlib.util
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Final

from resources_servers.math_with_judge.comparison import READY
from rollbook import MissingPackageError, ServingError

WORKER: Final = Path(__file__).with_name("comparison.py")
START_SECONDS: Final = 120.0
_READ_BYTES: Final = 65_536
_PER_CPU: Final = 2


def require_library() -> None:
    """Make sure that the comparing library is there, without loading it.

    Raises:
        MissingPackageError: it is not installed.

    """
    if importlib.util.find_spec("math_verify") is None:
        raise MissingPackageError(
            "resources_servers/math_with_judge needs the package 'math_verify', which is not installed; "
            "run: pip install 'rollbook[math]'"
        )


class Worker:
    """One process. It is used by one thread at a time.

    Raises:
        ServingError: the process does not start.

    """

    def __init__(self, program: Path = WORKER, start_seconds: float = START_SECONDS) -> None:
        self._process = subprocess.Popen(  # noqa: S603  our own interpreter and our own file
            [sys.executable, "-P", str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if self._line(time.monotonic() + start_seconds) != READY.encode():
            self.kill()
            raise ServingError(
                f"the process that compares answers does not start; see what `{sys.executable} -P {program}` says"
            )

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self._process.poll() is None

    def compare(self, gold: str, text: str, seconds: float) -> float | None:
        """Return the reward, or None when there was none in time; the worker is of no use then."""
        deadline = time.monotonic() + seconds
        request = json.dumps({"gold": gold, "text": text, "seconds": seconds}) + "\n"
        try:
            self._input.write(request.encode())
            self._input.flush()
        except (OSError, ValueError):  # the process ended, or the pool did
            return None
        line = self._line(deadline)
        return None if line is None else float(json.loads(line)["reward"])

    def stop(self) -> None:
        """End the process at once; a thread that waits for its reply has none."""
        self._process.kill()

    def kill(self) -> None:
        """End the process at once, wait for it, and let go of what it held."""
        self.stop()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        self._process.wait()

    @property
    def _input(self) -> IO[bytes]:
        if self._process.stdin is None:
            raise ServingError("the process that compares answers has no input")
        return self._process.stdin

    def _line(self, deadline: float) -> bytes | None:
        """Return the next line of the process, or None when it does not come before `deadline`, or ever."""
        if self._process.stdout is None:
            return None
        descriptor = self._process.stdout.fileno()
        read = b""
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            while not read.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    return None
                chunk = os.read(descriptor, _READ_BYTES)
                if not chunk:
                    return None
                read += chunk
        return read.rstrip(b"\n")


class WorkerPool:
    """Compares answers in at most `most` processes, each for at most `seconds`; they start when they are needed."""

    def __init__(self, seconds: float, most: int, program: Path = WORKER) -> None:
        self._seconds = seconds
        self._program = program
        self._threads = ThreadPoolExecutor(min(most, _PER_CPU * (os.cpu_count() or 1)), "math_with_judge")
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._closed = False

    @property
    def pids(self) -> frozenset[int]:
        """The processes that there are."""
        with self._lock:
            return frozenset(worker.pid for worker in {*self._idle, *self._busy})

    async def compare(self, gold: str, text: str) -> float:
        """Return 1.0 when the answer in `text` equals `gold`, 0.0 when it does not or takes too long.

        Raises:
            ServingError: no process can be started.

        """
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._compare, gold, text)

    async def close(self) -> None:
        """End all processes, those at work included."""
        await asyncio.to_thread(self._close)

    def _compare(self, gold: str, text: str) -> float:
        worker = self._taken()
        reward = None
        try:
            reward = worker.compare(gold, text, self._seconds)
        finally:
            self._give_back(worker, usable=reward is not None)
        return reward or 0.0

    def _taken(self) -> Worker:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
            if worker is not None and worker.is_alive:
                self._busy.add(worker)
                return worker
        if worker is not None:
            worker.kill()
        started = Worker(self._program)
        with self._lock:
            self._busy.add(started)
            closed = self._closed
        if closed:
            started.kill()
        return started

    def _give_back(self, worker: Worker, *, usable: bool) -> None:
        with self._lock:
            self._busy.discard(worker)
            keep = usable and not self._closed
            if keep:
                self._idle.append(worker)
        if not keep:
            worker.kill()

    def _close(self) -> None:
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
            busy = tuple(self._busy)
        for worker in busy:
            worker.stop()
        for worker in idle:
            worker.kill()
        self._threads.shutdown(wait=True, cancel_futures=True)

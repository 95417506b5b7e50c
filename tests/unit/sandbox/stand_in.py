"""A provider that runs nothing and remembers what it was asked."""

import asyncio
from pathlib import Path

from rollbook.sandbox import SandboxExecResult, SandboxHandle, SandboxStatus


class StandInProvider:
    """Answers every command with the next of `results`."""

    name = "stand_in"

    def __init__(self, **options) -> None:
        self.options = options
        self.asked: list[tuple] = []
        self.files: dict[str, bytes] = {}
        self.results: list[SandboxExecResult] = []
        self.refuses: set[str] = set()

    async def create(self, spec):
        self._ask("create", spec)
        return SandboxHandle("box-1", self.name)

    async def exec(self, handle, command, *, cwd=None, env=None, timeout_s=None, user=None):
        self._ask("exec", command, cwd, env, timeout_s, user)
        return self.results.pop(0) if self.results else SandboxExecResult("", "", 0)

    async def upload_file(self, handle, source_path: Path, target_path: str):
        self._ask("upload_file", target_path)
        self.files[target_path] = await asyncio.to_thread(source_path.read_bytes)

    async def download_file(self, handle, source_path: str, target_path: Path):
        self._ask("download_file", source_path)
        await asyncio.to_thread(target_path.write_bytes, self.files[source_path])

    async def status(self, handle):
        return SandboxStatus.RUNNING

    async def close(self, handle):
        self._ask("close", handle.sandbox_id)

    async def aclose(self):
        self._ask("aclose")

    def calls(self) -> list[str]:
        return [call[0] for call in self.asked]

    def _ask(self, *call) -> None:
        self.asked.append(call)
        if call[0] in self.refuses:
            raise OSError(f"no {call[0]} today")


class AbleProvider(StandInProvider):
    """One that can do what only some can."""

    async def exec_with_background_services(self, handle, command, **options):
        self._ask("exec_with_background_services", command)
        return SandboxExecResult("", "", 0)

    async def serialize_handle(self, handle, scope=None):
        return {"sandbox_id": handle.sandbox_id, "scope": scope}

    async def connect(self, descriptor):
        self._ask("connect", descriptor)
        return SandboxHandle(descriptor["sandbox_id"], self.name)

    async def pause(self, handle):
        self._ask("pause")

    async def resume(self, handle):
        self._ask("resume")

    async def endpoint(self, handle, port):
        return f"http://{handle.sandbox_id}:{port}"

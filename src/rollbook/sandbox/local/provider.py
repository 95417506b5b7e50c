"""The provider `local`: every sandbox is a directory and subprocesses of this machine.

Rules:
* It is no security boundary: a program in it runs as the user of this process and can read whatever that user can.
* It has no images: what a command finds is what this machine has. `image`, `entrypoint`, `ports`, `gpu` and `user` are
  not used.
* Everything is bounded: memory, files, processes and processor time by the kernel, time and output by this process.
* Where the kernel allows it, a sandbox has no network and process numbers of its own.
"""

import asyncio
import os
import secrets
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rollbook.errors import SandboxCreateError, SandboxError
from rollbook.sandbox.local import paths
from rollbook.sandbox.local.box import FOLDER_FOR_TEMPORARY_FILES, Box, own_folder
from rollbook.sandbox.local.command import FAULT_CODE, Command, run
from rollbook.sandbox.local.isolation import Isolation, isolation_here
from rollbook.sandbox.local.limits import Limits
from rollbook.sandbox.local.terminal import Terminal, open_terminal, opened_terminal
from rollbook.sandbox.values import (
    SandboxExecResult,
    SandboxHandle,
    SandboxPtySpec,
    SandboxSpec,
    SandboxStatus,
)

READY_TIMEOUT_S: Final = 30.0


class LocalProvider:
    """Sandboxes as directories and subprocesses; no security boundary.

    Args:
        workspace_root: where the directories are made; the system's folder for temporary files by default.
        network: whether programs may use the network; a policy of the spec that denies wins.
        memory_mib: address space of a process where the spec names none; None for no bound.
        file_mib: size of a file that a program writes, where the spec names no disk.
        open_files: files that a process may hold open.
        processes: processes of one sandbox, where the kernel can count them.
        isolation: what this machine lends to a sandbox; tried, when not given.

    """

    name = "local"

    def __init__(
        self,
        workspace_root: str | None = None,
        *,
        network: bool = False,
        memory_mib: int | None = 4096,
        file_mib: int = 4096,
        open_files: int = 1024,
        processes: int = 256,
        isolation: Isolation | None = None,
    ) -> None:
        self._workspace_root = workspace_root
        self._network = network
        self._limits = Limits(memory_mib, file_mib, open_files, processes)
        self._isolation = isolation
        self._boxes: dict[str, Box] = {}

    async def create(self, spec: SandboxSpec) -> SandboxHandle:
        """Make a directory and, where the kernel allows it, namespaces.

        The handle's `raw` holds `workspace`, the directory as a path, and `isolation`, what holds in a sentence.

        Raises:
            SandboxCreateError: the directory or the namespaces could not be made.
            SandboxPathError: the spec's `workdir` leads out of the sandbox.

        """
        box = await self._box(spec)
        try:
            box.workdir = await asyncio.to_thread(paths.make_folder, box.root, spec.workdir or ".")
            await box.hold(spec.ready_timeout_s or READY_TIMEOUT_S)
        except BaseException:
            await asyncio.shield(box.end())
            raise
        if spec.ttl_s:
            box.expire_after(spec.ttl_s)
        self._boxes[box.sandbox_id] = box
        return self._handle(box)

    async def exec(
        self,
        handle: SandboxHandle,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        user: str | int | None = None,
    ) -> SandboxExecResult:
        """Run a shell command; what it leaves behind is killed when it ends.

        Output beyond 4 MB of a stream is left out between its beginning and its end; a command that prints 256 MiB is
        ended, with `error_type` "output_limit". A sandbox that is gone is `error_type` "sandbox".

        Raises:
            SandboxPathError: `cwd` leads out of the sandbox.

        """
        del user
        return await self._run(handle, command, cwd, env, timeout_s, outlives=False)

    async def exec_with_background_services(
        self,
        handle: SandboxHandle,
        command: str,
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        timeout_s: float | None = None,
        user: str | int | None = None,
    ) -> SandboxExecResult:
        """Run a command as `exec` does; what it leaves behind runs until the sandbox ends."""
        del user
        return await self._run(handle, command, cwd, env, timeout_s, outlives=True)

    async def upload_file(self, handle: SandboxHandle, source_path: Path, target_path: str) -> None:
        """Copy a file of this machine into the sandbox.

        Raises:
            SandboxPathError: `target_path` leads out of the sandbox, or is no plain file.

        """
        await asyncio.to_thread(paths.copy_in, self._live(handle).root, Path(source_path), str(target_path))

    async def download_file(self, handle: SandboxHandle, source_path: str, target_path: Path) -> None:
        """Copy a file of the sandbox to this machine.

        Raises:
            FileNotFoundError: there is none.
            SandboxPathError: `source_path` leads out of the sandbox, or is no plain file.

        """
        await asyncio.to_thread(paths.copy_out, self._live(handle).root, str(source_path), Path(target_path))

    async def status(self, handle: SandboxHandle) -> SandboxStatus:
        """Return whether commands can run in the sandbox."""
        box = self._boxes.get(handle.sandbox_id)
        return SandboxStatus.RUNNING if box is not None and box.alive else SandboxStatus.STOPPED

    async def close(self, handle: SandboxHandle) -> None:
        """Kill every program of the sandbox and delete its directory; cancelling it cancels the waiting alone."""
        if box := self._boxes.get(handle.sandbox_id):
            ending = box.end()
            ending.add_done_callback(lambda _: self._boxes.pop(handle.sandbox_id, None))
            await asyncio.shield(ending)

    async def aclose(self) -> None:
        """End every sandbox that this provider still holds."""
        for box in [*self._boxes.values()]:
            await self.close(self._handle(box))

    async def create_pty(self, handle: SandboxHandle, spec: SandboxPtySpec) -> Terminal:
        """Start a program on a terminal.

        Raises:
            SandboxPtyError: none could be opened.

        """
        box = self._live(handle)
        return await open_terminal(box, spec, self._cwd(box, spec.cwd))

    async def attach_pty(self, handle: SandboxHandle, session_id: str) -> Terminal:
        """Return a terminal that was opened before.

        Raises:
            SandboxPtyError: there is none of that id.

        """
        return opened_terminal(self._live(handle), session_id)

    async def _box(self, spec: SandboxSpec) -> Box:
        isolation = self._isolation if self._isolation is not None else await asyncio.to_thread(isolation_here)
        sandbox_id = f"local-{secrets.token_hex(8)}"
        try:
            root = await asyncio.to_thread(_made, self._workspace_root, sandbox_id)
        except OSError as error:
            raise SandboxCreateError(f"no directory for a local sandbox: {error}") from error
        return Box(
            sandbox_id=sandbox_id,
            root=root,
            isolation=isolation,
            limits=self._limits.within(spec.resources),
            network=_network(spec, allowed=self._network),
            workdir=root,
            env=dict(spec.env),
            processors=spec.resources.cpu or os.cpu_count() or 1,
        )

    def _handle(self, box: Box) -> SandboxHandle:
        held = box.isolation.describe(network=box.network)
        return SandboxHandle(box.sandbox_id, self.name, {"workspace": box.root, "isolation": held})

    def _live(self, handle: SandboxHandle) -> Box:
        box = self._boxes.get(handle.sandbox_id)
        if box is None or not box.alive:
            raise SandboxError(f"the local sandbox {handle.sandbox_id} is gone")
        return box

    def _cwd(self, box: Box, cwd: str | None) -> Path:
        return box.workdir if cwd is None else paths.placed(box.root, cwd, start=box.workdir)

    async def _run(
        self,
        handle: SandboxHandle,
        command: str,
        cwd: str | None,
        env: Mapping[str, str] | None,
        timeout_s: float | None,
        *,
        outlives: bool,
    ) -> SandboxExecResult:
        box = self._boxes.get(handle.sandbox_id)
        if box is None or not box.alive:
            return SandboxExecResult("", f"the local sandbox {handle.sandbox_id} is gone", FAULT_CODE, "sandbox")
        wanted = Command(command, self._cwd(box, cwd), env or {}, timeout_s, outlives)
        return await run(box, wanted)


def _made(workspace_root: str | None, sandbox_id: str) -> Path:
    parent = Path(workspace_root or tempfile.gettempdir()).resolve()
    parent.mkdir(parents=True, exist_ok=True)
    root = parent / f"rollbook-{sandbox_id}"
    for folder in (root, own_folder(root)):
        folder.mkdir(mode=0o700)
    (root / FOLDER_FOR_TEMPORARY_FILES).mkdir()
    return root


def _network(spec: SandboxSpec, *, allowed: bool) -> bool:
    """Return whether a sandbox gets the network: a policy that denies by default denies all of it."""
    policy = spec.provider_options.get("network_policy")
    return allowed and not (isinstance(policy, Mapping) and policy.get("defaultAction") == "deny")

"""A Python program in a sandbox that is asked and answers, one line of JSON each.

Rules:
* The sandbox is `local` unless another block is given: a directory and limits of its own, no network and no files of
  this machine but those of Python where the kernel allows it, and no security boundary.
* An answer has a time and a size. A program that keeps to neither, or says what nobody asked, is ended with its
  sandbox.
* What comes out of the sandbox is checked: a program that was taken over can spoil its own answer and nothing else.
"""

import asyncio
import json
import shlex
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from rollbook.sandbox import (
    AsyncSandbox,
    SandboxError,
    SandboxPtySession,
    SandboxPtySpec,
    SandboxResources,
    SandboxSpec,
    cpu_cap_env,
)

START_TIMEOUT_S: Final = 60.0
LAST_WORDS_S: Final = 1.0
MOST_OF_A_WORD: Final = 4096
FOLDER: Final = "/app"
CONFINE: Final = Path(__file__).with_name("confine.py")
LOCAL: Final[Mapping[str, Any]] = {"local": {"open_files": 256, "processes": 64}}

Answer = TypeVar("Answer", bound=BaseModel)


class ConversationError(Exception):
    """The program is gone; the message says why. `late` when its time was up."""

    def __init__(self, message: str, *, late: bool = False) -> None:
        super().__init__(message)
        self.late = late


class _Ready(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ready: bool


class Conversation:
    """A running program; `close` ends it with all that it started and deletes its directory."""

    def __init__(self, sandbox: AsyncSandbox, session: SandboxPtySession) -> None:
        self._sandbox = sandbox
        self._session = session
        self._heard = bytearray()

    @classmethod
    async def begin(
        cls, program: Path, *, memory_mib: int, file_mib: int, life_s: float, provider: Mapping[str, Any] | None = None
    ) -> Self:
        """Start `program` in a sandbox of its own, for `life_s` seconds at most.

        Raises:
            ConversationError: it could not be started.

        """
        files = {f"{FOLDER}/{path.name}": await asyncio.to_thread(path.read_bytes) for path in (CONFINE, program)}
        sandbox = AsyncSandbox(
            provider or LOCAL,
            SandboxSpec(
                files=files,
                workdir=FOLDER,
                env=cpu_cap_env(1),
                ttl_s=life_s,
                resources=SandboxResources(memory_mib=memory_mib, disk_gib=file_mib / 1024),
            ),
        )
        python = sys.executable if "local" in (provider or LOCAL) else "python3"
        words = f"exec {shlex.quote(python)} -I {CONFINE.name} {program.name}"
        try:
            await sandbox.start()
            conversation = cls(sandbox, await sandbox.pty.create(SandboxPtySpec(command=words, pty=False)))
        except SandboxError as error:
            await sandbox.stop()
            raise ConversationError(f"no sandbox for Python: {error}") from error
        except BaseException:
            await sandbox.stop()
            raise
        try:
            await conversation._answer(_Ready, time_limit_s=START_TIMEOUT_S, most_bytes=MOST_OF_A_WORD)
        except BaseException:
            await conversation.close()
            raise
        return conversation

    async def ask(
        self, question: Mapping[str, Any], answer: type[Answer], *, time_limit_s: float, most_bytes: int
    ) -> Answer:
        """Return the program's answer, of `most_bytes` at most.

        Raises:
            ConversationError: there is none; the program is gone.

        """
        try:
            async with asyncio.timeout(time_limit_s):
                await self._session.write(json.dumps(question).encode() + b"\n")
                return await self._answer(answer, time_limit_s=None, most_bytes=most_bytes)
        except TimeoutError as error:
            await self.close()
            raise ConversationError(f"no end within {time_limit_s:g} s", late=True) from error
        except SandboxError as error:
            await self.close()
            raise ConversationError("the program ended before it was asked") from error
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """End the program; a second call changes nothing."""
        await asyncio.shield(asyncio.ensure_future(self._end()))

    async def _end(self) -> None:
        try:
            await self._session.close()
        finally:
            await self._sandbox.stop()

    async def _answer(self, answer: type[Answer], *, time_limit_s: float | None, most_bytes: int) -> Answer:
        line = await self._line(time_limit_s, most_bytes)
        try:
            return answer.model_validate_json(line)
        except ValidationError as error:
            raise ConversationError(await self._why("said what is no answer")) from error

    async def _line(self, time_limit_s: float | None, most_bytes: int) -> bytes:
        until = None if time_limit_s is None else time.monotonic() + time_limit_s
        while b"\n" not in self._heard:
            if len(self._heard) > most_bytes:
                raise ConversationError(f"the program said more than {most_bytes} bytes")
            left = None if until is None else max(0.0, until - time.monotonic())
            piece = await self._session.read(left)
            if not piece:
                raise ConversationError(await self._why("does not answer"))
            self._heard += piece
        line, _, rest = bytes(self._heard).partition(b"\n")
        if rest:
            raise ConversationError("the program said more than it was asked")
        self._heard.clear()
        return line

    async def _why(self, otherwise: str) -> str:
        """Return how the program ended, as a shell may have said it on the same line; `otherwise` while it runs."""
        code = await self._session.wait(LAST_WORDS_S)
        return f"the program {otherwise}" if code is None else f"the program ended with code {code}"

"""The Python programs of a server's sessions.

Rules:
* A session has a program of its own from its first call on, and one call at a time.
* A call that ends its program says so; the next one finds a new program without the variables.
* There are so many programs at most: room is made by ending the one that was not used for longest, and its session is
  told at its next call. A program lives so long at most.
* Ending is certain: whatever a program started ends with it.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from resources_servers.math_with_code.conversation import Conversation, ConversationError

WORKER: Final = Path(__file__).with_name("worker.py")
ANEW: Final = "the session starts anew without its variables"
MOST_FORGOTTEN: Final = 4096
LONGEST_CODE: Final = 1_000_000
FILE_MIB: Final = 64
BYTES_A_CHARACTER: Final = 12
"""A character is twelve bytes of JSON at most."""


class Ran(BaseModel):
    """What a piece of code did."""

    model_config = ConfigDict(strict=True)

    success: bool
    stdout: str = ""
    stderr: str = ""
    error_message: str | None = None
    result: str | None = None


@dataclass
class Limits:
    """What a program may take: seconds of a call and of its life, memory, characters of a text that it answers."""

    call_s: float
    life_s: float
    memory_mib: int
    output_chars: int
    sessions: int
    provider: Mapping[str, Any] | None = None


@dataclass(eq=False)
class Session:
    """A session's program, if it has one; `waiting` counts its calls that are not answered yet."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    program: Conversation | None = None
    waiting: int = 0

    async def end(self) -> None:
        """End the program."""
        program, self.program = self.program, None
        if program is not None:
            await program.close()


class Sessions:
    """The sessions of one server, those used last at the end."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._sessions: dict[str, Session] = {}
        self._forgotten: dict[str, None] = {}

    def __len__(self) -> int:
        """Return how many sessions there are."""
        return len(self._sessions)

    async def run(self, session_id: str, code: str) -> Ran:
        """Run code in a session, and return what it did."""
        if len(code) > LONGEST_CODE:
            return Ran(success=False, error_message=f"the code is longer than {LONGEST_CODE} characters")
        session = self._sessions.pop(session_id, None)
        if session is None and not await self._room():
            said = f"all {self._limits.sessions} sessions are running code; try again later"
            return Ran(success=False, error_message=said)
        session = self._sessions.pop(session_id, None) or session or Session()
        self._sessions[session_id] = session
        session.waiting += 1
        try:
            async with session.lock:
                ran = await self._ran(session, code)
        finally:
            session.waiting -= 1
        if self._sessions.get(session_id) is not session:
            await session.end()
        return self._told(session_id, ran)

    async def end(self, session_id: str) -> None:
        """End a session."""
        self._forgotten.pop(session_id, None)
        if session := self._sessions.pop(session_id, None):
            await session.end()

    async def close(self) -> None:
        """End every session, all at the same time."""
        await asyncio.gather(*[self.end(session_id) for session_id in self._sessions])

    async def _ran(self, session: Session, code: str) -> Ran:
        limits = self._limits
        try:
            if session.program is None:
                session.program = await Conversation.begin(
                    WORKER,
                    memory_mib=limits.memory_mib,
                    file_mib=FILE_MIB,
                    life_s=limits.life_s,
                    provider=limits.provider,
                )
            return await session.program.ask(
                {"code": code, "most": limits.output_chars},
                Ran,
                time_limit_s=limits.call_s,
                most_bytes=4 * BYTES_A_CHARACTER * (limits.output_chars + 100),
            )
        except ConversationError as error:
            await session.end()
            why = f"code timed-out: {error}" if error.late else str(error)
            return Ran(success=False, error_message=f"{why}; {ANEW}")
        except BaseException:
            await session.end()
            raise

    async def _room(self) -> bool:
        """Make room for one more session, and return whether there is any."""
        while len(self._sessions) >= self._limits.sessions:
            idle = next((each for each, session in self._sessions.items() if not session.waiting), None)
            if idle is None:
                return False
            session = self._sessions.pop(idle)
            self._forgotten[idle] = None
            if len(self._forgotten) > MOST_FORGOTTEN:
                del self._forgotten[next(iter(self._forgotten))]
            await session.end()
        return True

    def _told(self, session_id: str, ran: Ran) -> Ran:
        if session_id not in self._forgotten:
            return ran
        del self._forgotten[session_id]
        said = "This session was not used for long, and its variables are gone."
        return ran.model_copy(update={"stderr": f"{said}\n{ran.stderr}"})

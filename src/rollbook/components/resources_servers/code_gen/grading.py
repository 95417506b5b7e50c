"""A solution and the tests of a row: from its code to a verdict.

Rules:
* Tests run one after another in one sandbox, until one fails. They are told what to read and never what is expected.
* A test's end is enforced twice: by the program in the sandbox, and by this server where that program does not answer.
* Whatever a solution does is a verdict: a wrong answer (-2), no end in time (-3), an error or a death (-4).

Source: servers.md §7.3 (4); the codes are LiveCodeBench's.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, ConfigDict

from resources_servers.code_gen.comparing import printed_fault, returned_fault, shortened
from resources_servers.code_gen.unit_tests import UnitTests
from resources_servers.math_with_code.conversation import Conversation, ConversationError

RUNNER: Final = Path(__file__).with_name("runner.py")
WRONG: Final = -2
LATE: Final = -3
BROKEN: Final = -4
LATE_MESSAGE: Final = "Time Limit Exceeded"
GRACE_S: Final = 5.0
"""How much longer than a test's time the program in the sandbox may take to tell of it."""
ASK_S: Final = 30.0
FILE_MIB: Final = 64
MORE_OUTPUT: Final = 1 << 16
"""Bytes that a solution may print beyond twice what is expected."""
BYTES_A_BYTE: Final = 6
"""A byte of output is six bytes of JSON at most."""


@dataclass(frozen=True)
class Allowance:
    """What a test may take, and where it runs."""

    seconds: float
    memory_mib: int
    provider: Mapping[str, Any] | None = None


@dataclass
class Verdict:
    """True for every test that passed, false or a code for the one that did not; `metadata` tells of that one."""

    result: list[bool | int] = field(default_factory=list)
    metadata: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every test passed."""
        return all(each is True for each in self.result)


class _Ready(BaseModel):
    model_config = ConfigDict(extra="forbid")

    ready: bool


class _Tested(BaseModel):
    """How one test ended."""

    model_config = ConfigDict(strict=True, extra="forbid")

    code: int | None
    output: str
    error: str
    seconds: float


async def graded(code: str, tests: UnitTests, limits: Allowance) -> Verdict:
    """Run a solution against the tests.

    Raises:
        ConversationError: there is no sandbox.
        ValueError: an expected value is no JSON.

    """
    began = time.monotonic()
    verdict = Verdict()
    program = await Conversation.begin(
        RUNNER,
        memory_mib=limits.memory_mib,
        file_mib=FILE_MIB,
        life_s=(limits.seconds + GRACE_S + ASK_S) * (len(tests.inputs) + 1),
        provider=limits.provider,
    )
    try:
        await _graded(program, code, tests, limits, verdict)
    finally:
        await program.close()
    verdict.seconds = time.monotonic() - began
    return verdict


async def _graded(program: Conversation, code: str, tests: UnitTests, limits: Allowance, verdict: Verdict) -> None:
    asked = {"code": f"{tests.before}{code}{tests.after}", "function": tests.fn_name}
    await program.ask(asked, _Ready, time_limit_s=ASK_S, most_bytes=4096)
    took = 0.0
    for given, expected in zip(tests.inputs, tests.outputs, strict=True):
        most = 2 * len(expected.encode("utf-8", "replace")) + MORE_OUTPUT
        try:
            tested = await program.ask(
                {"input": given, "seconds": limits.seconds, "most": most},
                _Tested,
                time_limit_s=limits.seconds + GRACE_S,
                most_bytes=BYTES_A_BYTE * most + MORE_OUTPUT,
            )
            fault = await asyncio.to_thread(_fault, tested, expected, called=bool(tests.fn_name))
            took += max(0.0, tested.seconds)
        except ConversationError as error:
            fault = _late(str(error)) if error.late else _broken(str(error), "")
        if fault is not None:
            shown = {"inputs": shortened(given), "expected": shortened(expected)}
            verdict.metadata = fault | shown
            wrong_value = tests.fn_name and fault["error_code"] == WRONG
            verdict.result.append(False if wrong_value else fault["error_code"])
            return
        verdict.result.append(True)
    verdict.metadata = {"execution time": took}


def _fault(tested: _Tested, expected: str, *, called: bool) -> dict[str, Any] | None:
    """Return what is wrong with a test's end, None when it passed."""
    if tested.code is None:
        return _late("TimeoutException()")
    if tested.code != 0:
        return _broken(*_raised(tested))
    message = (returned_fault if called else printed_fault)(tested.output, expected)
    if message is None:
        return None
    return {"output": shortened(tested.output), "error_code": WRONG, "error_message": message}


def _raised(tested: _Tested) -> tuple[str, str]:
    try:
        error, trace = json.loads(tested.error)
    except (ValueError, TypeError, RecursionError):
        return f"the solution ended with code {tested.code}", ""
    return str(error), str(trace)


def _late(error: str) -> dict[str, Any]:
    return {"error": error, "error_code": LATE, "error_message": LATE_MESSAGE}


def _broken(error: str, trace: str) -> dict[str, Any]:
    return {"error": error, "error_code": BROKEN, "error_message": "Runtime Error"} | (
        {"traceback": trace} if trace else {}
    )

"""Programs that solve tasks of contests: the reward is 1 when the response's program passes every test of the row.

Rules:
* The program is the last fenced block of the response. Without one nothing is run.
* Programs run in sandboxes with limits, so many at once. Whatever one does is a verdict, and touches no other.
* A response that shows its reasoning in tags is worth 0, whatever its program does.
* A row whose tests cannot be read, or a machine without a sandbox, is no measure: the reward is masked.

Source: servers.md §7.3 (4).
"""

import asyncio
import re
from functools import cached_property
from typing import Any, ClassVar, Final

from pydantic import ConfigDict, Field

from resources_servers.code_gen.grading import Allowance, Verdict, graded
from resources_servers.code_gen.unit_tests import UnitTests, UnreadableTestsError, read_tests
from resources_servers.math_with_code.conversation import ConversationError
from rollbook import (
    VERIFIER_ERROR,
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
    compute_pass_majority_metrics,
    compute_subset_metrics,
    highest_k_metrics,
)

REASONING_TAGS: Final = ("<think>", "</think>", "<thinking>", "</thinking>")
FENCE: Final = re.compile(r"^[^\n]*```[^\n]*$", re.MULTILINE)
LONGEST_CODE: Final = 1_000_000


class CodeGenConfig(BaseResourcesServerConfig):
    """How programs are tested; the README tells of each."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS

    num_processes: int = Field(default=8, ge=1)
    unit_test_timeout_secs: float = Field(default=10, gt=0)
    memory_mib: int = Field(default=2048, ge=64)
    debug: bool = False
    sandbox: dict[str, Any] | None = None


class CodeGenRunRequest(BaseRunRequest):
    """A row: its tests."""

    model_config = ConfigDict(extra="allow")

    verifier_metadata: dict[str, Any] | None = None


class CodeGenVerifyRequest(CodeGenRunRequest, BaseVerifyRequest):
    """A row with its response."""


class CodeGenVerifyResponse(BaseVerifyResponse):
    """The row with its reward, the program that was found, and how it did."""

    model_config = ConfigDict(extra="allow")

    extracted_model_output: str | None = None
    extracted_model_code: str | None = None
    result: list[bool | int] | None = None
    metadata: dict[str, Any] | None = None
    unit_tests_time_taken: float | None = None
    reasoning_format_violation_rate: float = 0.0
    difficulty: str | None = None


class CodeGenResourcesServer(SimpleResourcesServer):
    """Tests programs."""

    config: CodeGenConfig

    async def verify(self, body: CodeGenVerifyRequest) -> CodeGenVerifyResponse:
        """Return the row with reward 1 or 0; masked when there is nothing to measure by."""
        row = body.model_dump(exclude={"response"}) | {"response": body.response}
        text = body.response.output_text
        code = last_fenced(text)
        found: dict[str, Any] = {
            "reward": 0.0,
            "extracted_model_output": text or None,
            "extracted_model_code": code,
            "result": None,
            "metadata": None,
            "unit_tests_time_taken": None,
            "reasoning_format_violation_rate": float(any(tag in text for tag in REASONING_TAGS)),
            "difficulty": difficulty(body.verifier_metadata),
        }
        try:
            tests = await asyncio.to_thread(read_tests, body.verifier_metadata)
            verdict = await self._tested(code, tests) if code else None
        except (UnreadableTestsError, ConversationError, ValueError) as error:
            mask = {"mask_sample": True, "failure_kind": VERIFIER_ERROR, "failure_reason": str(error)}
            return CodeGenVerifyResponse(**(row | found | mask))
        if verdict is not None:
            found |= {"result": verdict.result, "metadata": verdict.metadata, "unit_tests_time_taken": verdict.seconds}
            found["reward"] = float(verdict.passed and not found["reasoning_format_violation_rate"])
        return CodeGenVerifyResponse(**(row | found))

    def compute_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """Return pass@k and pass@1 averages in percent, of all tasks and of each difficulty."""
        metrics, *_ = compute_pass_majority_metrics(tasks)
        return metrics | compute_subset_metrics(tasks, "difficulty")

    def get_key_metrics(self, agent_metrics: dict[str, Any]) -> dict[str, Any]:
        """Return the means, and the pass metrics at the largest k."""
        means = {name: value for name, value in agent_metrics.items() if name.startswith("mean/")}
        passes = (highest_k_metrics(agent_metrics, pattern) for pattern in ("pass@1[avg-of-{k}]", "pass@{k}"))
        return means | {name: value for found in passes for name, value in found.items()}

    @cached_property
    def _places(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(self.config.num_processes)

    async def _tested(self, code: str, tests: UnitTests) -> Verdict:
        if len(code) > LONGEST_CODE:
            said = f"the program is longer than {LONGEST_CODE} characters"
            return Verdict([-4], {"error_code": -4, "error_message": said})
        config = self.config
        async with self._places:
            return await graded(
                code, tests, Allowance(config.unit_test_timeout_secs, config.memory_mib, config.sandbox)
            )


def last_fenced(text: str) -> str | None:
    """Return what stands between the last two lines with a fence; None when there are none, or nothing is in it."""
    fences = [*FENCE.finditer(text)]
    if len(fences) < 2:  # noqa: PLR2004  one opens, one closes
        return None
    code = text[fences[-2].end() + 1 : fences[-1].start()].rstrip("\n")
    return code if code.strip() else None


def difficulty(metadata: dict[str, Any] | None) -> str | None:
    """Return how difficult the row says that it is."""
    said = (metadata or {}).get("difficulty")
    return said if isinstance(said, str) else None


if __name__ == "__main__":
    CodeGenResourcesServer.run_webserver()

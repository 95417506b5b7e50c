"""Make the inspect_ai logs beside this file: `python make.py [FOLDER]`, where inspect_ai is installed.

No model is asked: inspect's own mock model answers. What inspect writes about the machine (tracebacks with folders, the
mock's answers once more, the repository) is taken out, so that a log is small and says nothing about who made it.
"""

import json
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import zipfile_zstd  # noqa: F401  teaches zipfile what inspect_ai writes
from inspect_ai import Task
from inspect_ai import eval as evaluate
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessageUser, ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, PARTIAL, Score, accuracy, choice, match, mean, scorer
from inspect_ai.solver import Generate, TaskState, generate, multiple_choice, solver, use_tools
from inspect_ai.tool import tool

SUMS = [Sample(id=f"sum-{n}", input=f"What is {n} + {n}?", target=str(n + n)) for n in (1, 2, 3, 4)]


def answers(*texts: str):
    """Return a mock model that answers with `texts`, one after another."""
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in texts]
    for output in outputs:
        said = len(output.completion)
        output.usage = ModelUsage(input_tokens=12, output_tokens=said, total_tokens=12 + said)
    return get_model("mockllm/model", custom_outputs=outputs)


def calls_a_tool():
    """Return a mock model that calls a tool and answers with what it gives."""
    usage = ModelUsage(input_tokens=30, output_tokens=7, total_tokens=37, input_tokens_cache_read=4, reasoning_tokens=2)
    call = ModelOutput.for_tool_call("mockllm/model", "add", {"a": 1, "b": 1}, tool_call_id="call-1")
    call.usage = usage
    said = ModelOutput.from_content("mockllm/model", "2")
    said.usage = usage
    return get_model("mockllm/model", custom_outputs=[call, said])


@tool
def add():
    """Add two numbers."""

    async def execute(a: int, b: int) -> str:
        """Add two numbers.

        Args:
            a: One.
            b: The other.

        """
        return str(a + b)

    return execute


@solver
def fails_on(sample: str):
    """Raise on one sample, answer the others."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id == sample:
            raise RuntimeError(f"no tool for {sample}")
        return await generate(state)

    return solve


@solver
def waits_for_another():
    """Answer, or fail while the other sample waits and is cancelled."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        if state.sample_id == "sum-1":
            return await generate(state)
        if state.sample_id == "sum-2":
            await anyio.sleep(0.5)
            raise RuntimeError("the sandbox is gone")
        await anyio.sleep(60)
        return state

    return solve


@solver
def talks():
    """Talk on and on."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        for _ in range(10):
            state = await generate(state)
        return state

    return solve


@scorer(metrics=[accuracy()])
def letters():
    """Give each of inspect's letters, by the sample."""

    async def score(state: TaskState, target) -> Score:
        value = {"sum-1": CORRECT, "sum-2": PARTIAL, "sum-3": INCORRECT}.get(str(state.sample_id), NOANSWER)
        return Score(value=value, answer=state.output.completion, explanation="by the sample")

    return score


@scorer(metrics={"length": [mean()], "is_short": [mean()]})
def several():
    """Give two values of one answer."""

    async def score(state: TaskState, target) -> Score:
        text = state.output.completion
        return Score(value={"length": len(text), "is_short": len(text) < 5})

    return score


@scorer(metrics=[mean()])
def not_a_number():
    """Give no score to one sample, and a number to the others."""

    async def score(state: TaskState, target) -> Score:
        return Score(value=float("nan") if state.sample_id == "sum-2" else 0.25)

    return score


def made() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield (name of the log, format, the evaluation's arguments)."""
    yield (
        "epochs",
        "eval",
        {
            "tasks": Task(dataset=SUMS, solver=generate(), scorer=match(), epochs=3, name="sums"),
            "model": answers(*["2", "4", "7", "8", "2", "5", "6", "9", "3", "4", "6", "8"]),
        },
    )
    yield (
        "errors",
        "eval",
        {
            "tasks": Task(dataset=SUMS[:3], solver=fails_on("sum-2"), scorer=match(), epochs=2, name="errors"),
            "model": answers("2", "6", "2", "7"),
            "fail_on_error": False,
        },
    )
    yield (
        "limits",
        "json",
        {
            "tasks": Task(dataset=SUMS[:2], solver=talks(), message_limit=4, name="limits"),
            "model": answers(*["2", "still 2"] * 4),
        },
    )
    yield (
        "scored_limits",
        "json",
        {
            "tasks": Task(dataset=SUMS[:2], solver=talks(), scorer=match(), message_limit=4, name="limits"),
            "model": answers(*["2", "still 2"] * 4),
        },
    )
    yield (
        "scorers",
        "json",
        {
            "tasks": Task(
                dataset=SUMS, solver=generate(), scorer=[match(), letters(), several(), not_a_number()], name="scorers"
            ),
            "model": answers("2", "4", "five", "eight"),
        },
    )
    yield (
        "choices",
        "eval",
        {
            "tasks": Task(
                dataset=[
                    Sample(id=1, input="Which is a prime?", choices=["4", "7", "9"], target="B"),
                    Sample(
                        id=2, input="Which is even?", choices=["4", "7", "9"], target="A", metadata={"level": "easy"}
                    ),
                ],
                solver=multiple_choice(),
                scorer=choice(),
                epochs=2,
                name="choices",
            ),
            "model": answers("ANSWER: B", "ANSWER: C", "ANSWER: B", "ANSWER: A"),
        },
    )
    yield (
        "cancelled",
        "eval",
        {
            "tasks": Task(dataset=SUMS, solver=waits_for_another(), scorer=match(), epochs=2, name="cancelled"),
            "model": answers("2", "2"),
            "max_samples": 4,
        },
    )
    yield (
        "tools",
        "json",
        {
            "tasks": Task(
                dataset=[Sample(id="tool", input=[ChatMessageUser(content="Add 1 and 1.")], target="2")],
                solver=[use_tools(add()), generate()],
                scorer=match(),
                name="tools",
            ),
            "model": calls_a_tool(),
        },
    )


_LEFT_OUT = {"traceback": "", "traceback_ansi": "", "custom_outputs": [], "store": {}}


def scrubbed(value: Any) -> Any:
    """Return `value` without what says where it was made, and without what makes it large."""
    if isinstance(value, dict):
        kept = {name: held for name, held in value.items() if name != "revision"}
        return {name: _LEFT_OUT.get(name, scrubbed(held)) for name, held in kept.items()}
    return [scrubbed(held) for held in value] if isinstance(value, list) else value


def text_of(text: bytes) -> bytes:
    """Return a JSON document, scrubbed; of events only the first few stay."""
    document = json.loads(text)
    for sample in [document, *document.get("samples", [])] if isinstance(document, dict) else []:
        if "events" in sample:
            sample["events"] = sample["events"][:2]
    return json.dumps(scrubbed(document), separators=(",", ":")).encode()


def keep(log: Path, kept: Path, compression: int | None = None) -> None:
    """Write `log` to `kept`, scrubbed; an archive is compressed as it was, or by `compression`."""
    if log.suffix == ".json":
        kept.write_bytes(text_of(log.read_bytes()))
        return
    with zipfile.ZipFile(log) as source, zipfile.ZipFile(kept, "w") as archive:
        for entry in source.infolist():
            named = zipfile.ZipInfo(entry.filename, date_time=(2026, 1, 1, 0, 0, 0))
            archive.writestr(named, text_of(source.read(entry)), compression or entry.compress_type)


def main(folder: Path) -> None:
    """Make every log."""
    for name, form, arguments in made():
        with tempfile.TemporaryDirectory() as logs:
            evaluate(**{"max_samples": 1} | arguments, log_dir=logs, log_format=form, display="none")
            [log] = Path(logs).iterdir()
            keep(log, folder / f"{name}.{form}")
            if name == "epochs":
                keep(log, folder / "deflated.eval", zipfile.ZIP_DEFLATED)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)

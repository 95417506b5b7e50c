"""The files of a run, made without running it: so many scored rollouts, their plan, their log and their manifest.

Rules:
* Rows look like the ones that a run saves: payload first, then identity; 2 KB a result, 0.5 KB a line of the plan.
* One template is filled for all, thousands of lines a write.
"""

import json
from collections.abc import Callable
from pathlib import Path

from rollbook.ledger.digests import sha256_of
from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.records.manifest import PlanDigest, RunManifest

RUN_ID = "bench-run"
REPEATS = 4
RESULT_BYTES = 2048
PLAN_BYTES = 512
Line = Callable[[int], bytes]
"""The line of the rollout with that number; a line break ends it."""
_AGENT = {"type": "responses_api_agents", "name": "stub_agent"}
_LINES_A_WRITE = 10_000
_RESERVED_A_LINE = 64
_TEXT = "The forecast shows a cold front moving in from the northwest, with gusts up to 35 km/h and some rain. "


def reply(size: int) -> dict[str, object]:
    """Return what an agent answers, some `size` bytes of it."""
    usage = {"input_tokens": 120, "output_tokens": 45, "total_tokens": 165}
    content: dict[str, object] = {"annotations": [], "text": "", "type": "output_text"}
    message = {"id": "msg_1", "content": [content], "role": "assistant", "status": "completed", "type": "message"}
    call = {"arguments": '{"city": "Oslo"}', "call_id": "call_1", "name": "get_weather", "type": "function_call"}
    said = {"call_id": "call_1", "output": '{"temperature": 3}', "type": "function_call_output"}
    response = {
        "id": "resp_1",
        "created_at": 1756074069.0,
        "error": None,
        "metadata": {},
        "model": "stub-model",
        "object": "response",
        "output": [call, said, message],
        "parallel_tool_calls": True,
        "status": "completed",
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }
    payload = {"responses_create_params": params(), "response": response, "reward": 1.0, "accuracy": 1.0}
    missing = size - len(json.dumps(payload, separators=(",", ":")))
    content["text"] = (_TEXT * (missing // len(_TEXT) + 1))[: max(0, missing)]
    return payload


def params() -> dict[str, object]:
    """Return what a task asks a model."""
    schema = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tool = {"name": "get_weather", "parameters": schema, "strict": True, "type": "function"}
    return {"input": [{"content": "What is the weather like?", "role": "user"}], "tools": [tool]}


def make(output: Path, rollouts: int, planned_line: Line | None = None, saved_line: Line | None = None) -> RunPaths:
    """Write the files of a finished run of `rollouts` rollouts, with lines of its own where they are given."""
    paths = RunPaths(output)
    identity: dict[str, object] = {"_ng_task_index": 0, "_ng_rollout_index": 0, "agent_ref": _AGENT}
    planned = _template({"responses_create_params": params()} | identity, PLAN_BYTES)
    _write(paths.materialized_inputs, rollouts, planned_line or (lambda n: planned % divmod(n, REPEATS)))
    saved = _template(reply(RESULT_BYTES - 160) | identity | {"_ng_run_id": RUN_ID}, RESULT_BYTES)
    _write(paths.output, rollouts, saved_line or (lambda n: saved % divmod(n, REPEATS)))
    paths.failures.touch()
    _write_log(paths, rollouts)
    plan = PlanDigest(
        sha256=sha256_of(paths.materialized_inputs), bytes=paths.materialized_inputs.stat().st_size, rollouts=rollouts
    )
    write_manifest(paths.manifest, RunManifest(run_id=RUN_ID, created_at="2026-01-01T00:00:00+00:00", plan=plan))
    return paths


def _template(row: dict[str, object], size: int) -> bytes:
    """Return `row` as a line with places for task and rollout, padded to some `size` bytes."""
    short = json.dumps(row, separators=(",", ":")).encode()
    padded = {"note": "x" * max(0, size - len(short) - 12)} | row
    line = json.dumps(padded, separators=(",", ":")).replace("%", "%%") + "\n"
    named = line.replace('"_ng_task_index":0', '"_ng_task_index":%d')
    return named.replace('"_ng_rollout_index":0', '"_ng_rollout_index":%d').encode()


def _write(path: Path, count: int, line: Line) -> None:
    with path.open("wb", buffering=0) as file:
        for start in range(0, count, _LINES_A_WRITE):
            file.write(b"".join(map(line, range(start, min(count, start + _LINES_A_WRITE)))))


def _write_log(paths: RunPaths, rollouts: int) -> None:
    def event(**fields: object) -> bytes:
        return json.dumps(fields, separators=(",", ":")).encode() + b"\n"

    with paths.manifest_log.open("wb") as log:
        log.write(event(t="open", session=1, run_id=RUN_ID, at="2026-01-01T00:00:00+00:00", sizes=[0, 0]))
        for start in range(0, rollouts, _RESERVED_A_LINE):
            numbers = range(start, min(rollouts, start + _RESERVED_A_LINE))
            attempts = [number for n in numbers for number in (*divmod(n, REPEATS), 0)]
            log.write(event(t="reserve", a=attempts, sizes=[0, 0], after=1.0))
        sizes = [paths.output.stat().st_size, 0]
        log.write(event(t="close", how="finished", at="2026-01-01T01:00:00+00:00", sizes=sizes, after=3600.0))

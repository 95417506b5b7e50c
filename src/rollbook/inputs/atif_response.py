"""An ATIF trajectory → the response that a verifier reads.

Rules:
* What the agent said, thought and called, and what came back, in order; what stood before its first step is the
  request, and the row has that.
* What a response cannot hold is left out, and the projection says so.

Source: collection.md §9.1.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rollbook.errors import InputError
from rollbook.inputs.atif import steps_of
from rollbook.records.json_values import JsonMapping, JsonObject

COMPLETE: Final = "complete"
LOSSY: Final = "lossy"
_AGENT: Final = "agent"
_ROLES: Final = ("user", "system")


@dataclass(slots=True)
class Projection:
    """The output items of a trajectory; `left_out` says what could not be one."""

    items: list[JsonObject] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        """Whether everything is there."""
        return LOSSY if self.left_out else COMPLETE

    def add(self, number: int, step: JsonMapping, where: str) -> None:
        """Add what a step says."""
        source = step.get("source")
        if source in _ROLES:
            self._add_turn(number, step, str(source))
            return
        if source != _AGENT:
            raise InputError(f"{where}: step {number}: source is {source!r}; it is agent, user or system")
        reasoning = step.get("reasoning_content")
        if isinstance(reasoning, str) and reasoning:
            summary = [{"type": "summary_text", "text": reasoning}]
            self.items.append({"id": f"rs_{number}", "type": "reasoning", "summary": summary})
        text = self._text(number, step.get("message"))
        if text:
            self.items.append(_message(number, text))
        self.items += [_call(number, call, where) for call in _objects(step.get("tool_calls"))]
        self._observe(number, step.get("observation"))

    def _add_turn(self, number: int, step: JsonMapping, role: str) -> None:
        if self.items:
            text = self._text(number, step.get("message"))
            self.items.append({"type": "message", "role": role, "content": text})
        self._observe(number, step.get("observation"))

    def _observe(self, number: int, observation: object) -> None:
        results = observation.get("results") if isinstance(observation, Mapping) else None
        for result in _objects(results):
            call_id, content = result.get("source_call_id"), self._text(number, result.get("content"))
            if isinstance(call_id, str) and call_id:
                self.items.append({"type": "function_call_output", "call_id": call_id, "output": content})
            elif content:
                self.left_out.append(f"step {number}: an observation of no call")

    def _text(self, number: int, message: object) -> str:
        if message is None or isinstance(message, str):
            return message or ""
        parts = list(_objects(message))
        texts = [part["text"] for part in parts if isinstance(part.get("text"), str)]
        if len(texts) < len(parts) or not isinstance(message, list):
            self.left_out.append(f"step {number}: content that is no text")
        return "".join(map(str, texts))


def _objects(value: object) -> Iterator[JsonMapping]:
    return (one for one in value if isinstance(one, Mapping)) if isinstance(value, list) else iter(())


def _message(number: int, text: str) -> JsonObject:
    content = [{"type": "output_text", "text": text, "annotations": []}]
    return {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed", "content": content}


def _call(number: int, call: JsonMapping, where: str) -> JsonObject:
    call_id, name = call.get("tool_call_id"), call.get("function_name")
    if not isinstance(call_id, str) or not isinstance(name, str):
        raise InputError(f"{where}: step {number}: a tool call without tool_call_id or function_name")
    arguments = call.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments if arguments is not None else {})
    return {"type": "function_call", "call_id": call_id, "name": name, "arguments": text, "status": "completed"}


def response_of(trajectory: JsonMapping, where: str) -> tuple[JsonObject, str]:
    """Return the response that a trajectory stands for, and whether everything of it is in there.

    Raises:
        InputError: a step that is none, or a trajectory in which no agent says anything; names where it lies.

    """
    projection = Projection()
    steps = steps_of(trajectory, where)
    for number, step in enumerate(steps, start=1):
        projection.add(number, step, where)
    if not projection.items:
        raise InputError(f"{where}: no step of an agent: there is no answer to judge")
    agent = trajectory.get("agent")
    model = agent.get("model_name") if isinstance(agent, Mapping) else None
    response: JsonObject = {
        "id": f"resp_{trajectory.get('trajectory_id') or trajectory.get('session_id') or 'trajectory'}",
        "object": "response",
        "created_at": 0.0,
        "model": model if isinstance(model, str) else "",
        "output": projection.items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }
    usage = _usage(trajectory, steps)
    return response | ({"usage": usage} if usage else {}), projection.status


def _usage(trajectory: JsonMapping, steps: Iterable[JsonMapping]) -> JsonObject | None:
    final = trajectory.get("final_metrics")
    total = final if isinstance(final, Mapping) else {}
    each = [metrics for step in steps if isinstance(metrics := step.get("metrics"), Mapping)]
    found = {
        name: _count(total.get(f"total_{name}"), (metrics.get(name) for metrics in each))
        for name in ("prompt_tokens", "completion_tokens", "cached_tokens")
    }
    if not found["prompt_tokens"] and not found["completion_tokens"]:
        return None
    return {
        "input_tokens": found["prompt_tokens"],
        "input_tokens_details": {"cached_tokens": found["cached_tokens"]},
        "output_tokens": found["completion_tokens"],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": found["prompt_tokens"] + found["completion_tokens"],
    }


def _count(total: object, each: Iterable[object]) -> int:
    if isinstance(total, int) and not isinstance(total, bool):
        return total
    return sum(one for one in each if isinstance(one, int) and not isinstance(one, bool))

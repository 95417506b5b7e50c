"""Where the answer of a response stands: in its text, or in the arguments of its one call.

Rules:
* What is wrong with a response before its answer is read is said here.
* In `tool_call` mode the format is JSON, whatever the row's schema was written in.
"""

from typing import Any, Final

from resources_servers.structured_outputs.questions import Fault
from rollbook import NeMoGymResponse

_MOST_NAMES: Final = 20


def text_of(response: NeMoGymResponse) -> str | Fault:
    """Return the text of all messages, as they follow each other."""
    text = response.output_text
    return text if text.strip() else Fault("empty_response", "the response has no text")


def arguments_of(response: NeMoGymResponse, tool_name: str | None) -> str | Fault:
    """Return the arguments of the one call; any tool will do where no name is given."""
    if response.error is not None:
        return Fault("api_error", str(response.error)[:1000])
    calls: list[Any] = [item for item in response.output if item.type == "function_call"]
    if not calls:
        return Fault("missing_tool_call", "the response calls no tool")
    names = ", ".join(call.name for call in calls[:_MOST_NAMES])
    if len(calls) > 1:
        return Fault("multiple_tool_calls", f"the response calls {len(calls)} tools, not one: {names}"[:1000])
    if tool_name and calls[0].name != tool_name:
        return Fault("wrong_tool_name", f"the response calls {names[:500]!r}, not {tool_name[:200]!r}")
    return str(calls[0].arguments)

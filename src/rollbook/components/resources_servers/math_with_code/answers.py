r"""The answer of a response, and whether it is the expected one.

Rules:
* The answer is what stands in the last filled `\boxed{…}` of the last message that has any; without one, of the last
  tool output that printed any.
* Two answers are equal as texts without their outer `\(…\)`, `$…$` or `\text{…}` and without white space around them,
  or as numbers that differ by less than a millionth.

Source: servers.md §7.3 (3).
"""

import json
import math
import re
from typing import Final

from resources_servers.mcqa.boxed import last_boxed
from rollbook import NeMoGymResponse

NEAR: Final = 1e-6
LONGEST_NUMBER: Final = 400
"""Characters: a float has no more digits than that in front of its point."""
_WRAPPED: Final = (
    re.compile(r"\\\((.*)\\\)", re.DOTALL),
    re.compile(r"\$([^$]*)\$"),
    re.compile(r"\\text\s*\{([^{}]*)\}"),
)


def found_answer(response: NeMoGymResponse) -> str | None:
    """Return the answer of a response, None when it gives none."""
    for text in [*reversed(said(response)), *reversed(shown(response))]:
        if boxed := (last_boxed(text) or "").strip():
            return boxed
    return None


def said(response: NeMoGymResponse) -> list[str]:
    """Return the texts of a response's messages."""
    messages = [item for item in response.output if item.type == "message"]
    return [response.model_copy(update={"output": [item]}).output_text for item in messages]


def shown(response: NeMoGymResponse) -> list[str]:
    """Return what a response's tools printed."""
    outputs = [item.output for item in response.output if item.type == "function_call_output"]
    return [printed(output) for output in outputs if isinstance(output, str)]


def printed(output: str) -> str:
    """Return what a tool printed: the `stdout` of its answer, or the whole where it is no such answer."""
    try:
        said = json.loads(output)
    except (ValueError, RecursionError):
        return output
    stdout = said.get("stdout") if isinstance(said, dict) else None
    return stdout if isinstance(stdout, str) else ""


def equal(answer: str, expected: str) -> bool:
    """Return whether two answers are the same."""
    one, other = bare(answer), bare(expected)
    if one == other:
        return True
    first, second = number(one), number(other)
    if first is None or second is None:
        return False
    return abs(first - second) < NEAR * max(1.0, abs(second))


def bare(answer: str) -> str:
    """Return an answer without its markup."""
    text = answer.strip()
    for pattern in _WRAPPED:
        if found := pattern.fullmatch(text):
            text = found[1].strip()
    return text


def number(text: str) -> float | None:
    """Return the number that a text stands for, None when it is none, or not finite."""
    if len(text) > LONGEST_NUMBER:
        return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None

"""What of a question and of a response a judge is shown.

Rules:
* A pattern's last match counts; its first filled group, or the whole of it when it has none.
* A pattern sees the end of a long text alone. One that does not compile raises before any text is looked at.

Source: servers.md §7.3 (12).
"""

import re
from typing import Final

from rollbook import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming

PATTERN_CHARS: Final = 8_192


def compiled(pattern: str | None) -> re.Pattern[str] | None:
    """Return a pattern over several lines, None for none.

    Raises:
        re.error: it is no regular expression.

    """
    return re.compile(pattern, re.MULTILINE | re.DOTALL) if pattern else None


def last_match(pattern: re.Pattern[str], text: str) -> str | None:
    """Return what a pattern takes of a text, None when it matches nowhere."""
    matches = list(pattern.finditer(text[-PATTERN_CHARS:]))
    if not matches:
        return None
    filled = [group for group in matches[-1].groups() if group]
    return (filled[0] if filled else matches[-1].group()).strip()


def last_assistant_text(response: NeMoGymResponse) -> str:
    """Return the text of a response's last message."""
    messages = [item for item in response.output if item.type == "message"]
    return response.model_copy(update={"output": messages[-1:]}).output_text.strip()


def last_user_text(params: NeMoGymResponseCreateParamsNonStreaming) -> str:
    """Return what the user said last."""
    asked = params.model_dump()["input"]
    if isinstance(asked, str):
        return asked
    said = [message.get("content") for message in asked if message.get("role") == "user"]
    return _plain(said[-1]) if said else ""


def _plain(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content if isinstance(part, dict))
    return str(content or "")

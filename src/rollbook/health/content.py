"""Whether a piece of a conversation holds anything: text, or a call of a tool.

Rules:
* Blank text is nothing, and so is a list or an object of nothings.
* How a dialect nests its pieces does not matter; what is nested beyond measure holds nothing more.

Source: collection.md §7.2.
"""

from typing import Final

_CONTENT_KEYS: Final = (
    "text",
    "content",
    "output_text",
    "answer",
    "refusal",
    "encrypted_content",
    "reasoning",
    "reasoning_content",
    "summary",
)
_REASONING_KEYS: Final = frozenset({"encrypted_content", "reasoning", "reasoning_content", "summary", "thinking"})
_REASONING_TYPES: Final = frozenset({"reasoning", "thinking", "redacted_thinking"})
TOOL_CALL_TYPES: Final = frozenset(
    {
        "function_call",
        "tool_call",
        "tool_use",
        "mcp_call",
        "mcp_list_tools",
        "mcp_approval_request",
        "file_search_call",
        "web_search_call",
        "computer_call",
        "image_generation_call",
        "code_interpreter_call",
        "local_shell_call",
        "custom_tool_call",
    }
)
_WRAPPING_KEYS: Final = ("output", "choices", "message", "content")
_MOST_LEVELS: Final = 64


def has_content(value: object, level: int = 0) -> bool:
    """Whether `value` holds text or anything else that is not empty."""
    if isinstance(value, str):
        return bool(value.strip())
    if level > _MOST_LEVELS:
        return False
    if isinstance(value, list):
        return any(has_content(item, level + 1) for item in value)
    if isinstance(value, dict):
        return any(has_content(value.get(key), level + 1) for key in _CONTENT_KEYS)
    return False


def has_tool_call(value: object, level: int = 0) -> bool:
    """Whether `value` is or holds a call of a tool."""
    if level > _MOST_LEVELS:
        return False
    if isinstance(value, list):
        return any(has_tool_call(item, level + 1) for item in value)
    if not isinstance(value, dict):
        return False
    if is_tool_call(value) or value.get("tool_calls"):
        return True
    return any(has_tool_call(value.get(key), level + 1) for key in _WRAPPING_KEYS)


def is_tool_call(value: dict[object, object]) -> bool:
    """Whether an item is itself a call of a tool."""
    kind = value.get("type")
    return isinstance(kind, str) and kind in TOOL_CALL_TYPES


def has_text(value: object, level: int = 0) -> bool:
    """Whether a response, or a piece of one, says anything to whoever asked: neither reasoning nor a call of a tool."""
    if isinstance(value, str):
        return bool(value.strip())
    if level > _MOST_LEVELS:
        return False
    if isinstance(value, list):
        return any(has_text(item, level + 1) for item in value)
    if not isinstance(value, dict) or is_tool_call(value) or value.get("type") in _REASONING_TYPES:
        return False
    spoken = (key for key in (*_CONTENT_KEYS, "output", "choices", "message") if key not in _REASONING_KEYS)
    return any(has_text(value.get(key), level + 1) for key in spoken)

"""The values that pass between the server and the processes that check."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Question:
    """A text in a format, and the schema it should fit. A tool's arguments are JSON; `payload_key` holds the value."""

    schema_str: str
    text: str
    form: str = "json"
    is_tool_call: bool = False
    payload_key: str | None = None
    coerce_xml: bool = True


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a text does not fit."""

    error_type: str
    error_message: str

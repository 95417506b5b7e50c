"""A request of either dialect as one value: who said what, which tools there are.

Rules:
* The same prompt gives the same turns, however its items spell it: content as text or parts, system or developer.
* Items that nobody said (reasoning, references, hosted calls) are no turns.

Source: servers.md §5.1.
"""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

CALL: Final = "call"
RESULT: Final = "result"
_ROLES: Final = {"developer": "system", "tool": RESULT, "function": RESULT}
_ASKING: Final = frozenset({"user", "system"})


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said; `role` is system, user, assistant, call or result."""

    role: str
    text: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that the request offers; `parameters` is a JSON schema."""

    name: str
    description: str
    parameters: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A request. `seed` is the one that it carries itself, if any."""

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    calls_allowed: bool = True
    calls_at_once: bool = True
    seed: str | None = None

    @property
    def prompt(self) -> tuple[Turn, ...]:
        """The turns up to the last one of the asking side: what one answer, with all its tool calls, answers."""
        asking = [place for place, turn in enumerate(self.turns) if turn.role in _ASKING]
        return self.turns[: asking[-1] + 1] if asking else ()

    @property
    def asked(self) -> str:
        """What the user said last."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == "user"), "")

    @property
    def instructions(self) -> str:
        """Everything that the asking side said."""
        return "\n".join(turn.text for turn in self.turns if turn.role in _ASKING)

    @property
    def calls_made(self) -> int:
        """How many tools were called since the prompt."""
        return sum(turn.role == CALL for turn in self.turns[len(self.prompt) :])

    @property
    def last_result(self) -> str | None:
        """What the last tool answered."""
        return next((turn.text for turn in reversed(self.turns) if turn.role == RESULT), None)


def prefix_digests(turns: Iterable[Turn]) -> Iterator[str]:
    """Yield a digest for each beginning of `turns`, shortest first; the work grows with the text alone."""
    state = blake2b(digest_size=16)
    for turn in turns:
        text = turn.text.strip().encode("utf-8", "surrogatepass")
        state.update(turn.role.encode() + len(text).to_bytes(8, "big") + text)
        yield state.hexdigest()


def digest_of_turns(turns: Iterable[Turn]) -> str:
    """Return the digest of all of `turns`; empty without any."""
    return next(iter(deque(prefix_digests(turns), maxlen=1)), "")


def from_responses(params: Mapping[str, object]) -> Conversation:
    """Return the body of a Responses request as a conversation."""
    metadata = params.get("metadata")
    extra_body = metadata.get("extra_body") if isinstance(metadata, Mapping) else None
    return Conversation(
        responses_turns(params),
        tuple(_tools(params.get("tools"))),
        calls_allowed=params.get("tool_choice") != "none",
        calls_at_once=params.get("parallel_tool_calls") is not False,
        seed=_seed_in(extra_body),
    )


def from_chat(params: Mapping[str, object]) -> Conversation:
    """Return the body of a chat completion request as a conversation."""
    seed = params.get("seed")
    turns = (turn for message in _mappings(params.get("messages")) for turn in _message_turns(message))
    return Conversation(
        tuple(turns),
        tuple(_tools(params.get("tools"))),
        calls_allowed=params.get("tool_choice") != "none",
        calls_at_once=params.get("parallel_tool_calls") is not False,
        seed=None if seed is None else str(seed),
    )


def responses_turns(params: Mapping[str, object]) -> tuple[Turn, ...]:
    """Return what is said in `instructions` and `input` of a Responses request."""
    given = params.get("input")
    instructions = params.get("instructions")
    first = [Turn("system", instructions)] if isinstance(instructions, str) else []
    if isinstance(given, str):
        return (*first, Turn("user", given))
    return (*first, *(turn for item in _mappings(given) for turn in _item_turns(item)))


def _item_turns(item: Mapping[str, object]) -> Iterator[Turn]:
    kind = item.get("type")
    if kind == "function_call":
        yield Turn(CALL, f"{item.get('name')} {item.get('arguments')}")
    elif kind == "function_call_output":
        yield Turn(RESULT, _text(item.get("output")))
    elif "role" in item:
        yield from _message_turns(item)


def _message_turns(message: Mapping[str, object]) -> Iterator[Turn]:
    calls = list(_mappings(message.get("tool_calls")))
    text = _text(message.get("content"))
    if text or not calls:
        role = str(message.get("role"))
        yield Turn(_ROLES.get(role, role), text)
    for call in calls:
        function = call.get("function")
        named: Mapping[str, object] = function if isinstance(function, Mapping) else {}
        yield Turn(CALL, f"{named.get('name')} {named.get('arguments')}")


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part["text"]) for part in _mappings(content) if isinstance(part.get("text"), str))


def _tools(tools: object) -> Iterator[Tool]:
    for tool in _mappings(tools):
        nested = tool.get("function")
        function: Mapping[str, object] = nested if isinstance(nested, Mapping) else tool
        parameters = function.get("parameters")
        if tool.get("type") == "function" and isinstance(function.get("name"), str):
            schema: Mapping[str, object] = parameters if isinstance(parameters, Mapping) else {}
            yield Tool(str(function["name"]), str(function.get("description") or ""), schema)


def _seed_in(extra_body: object) -> str | None:
    try:
        fields = json.loads(extra_body) if isinstance(extra_body, str) else None
    except ValueError:
        return None
    seed = fields.get("seed") if isinstance(fields, Mapping) else None
    return None if seed is None else str(seed)


def _mappings(value: object) -> Iterator[Mapping[str, object]]:
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from (entry for entry in value if isinstance(entry, Mapping))

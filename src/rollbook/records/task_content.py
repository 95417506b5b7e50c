"""What a task says, as a digest: the same task has the same one in whatever run it stands.

Rules:
* Routing, identity, repeats, seeds, attempts and skills change no digest, nor does the order of keys.
* What says how a model is asked (its name, temperature, limits on its answer) is no part of a task: two models, or one
  model with two settings, are asked the same task.
* A prompt that a server echoes with defaults filled in is the prompt that was planned: what is null or empty says
  nothing, nor does what holds where nothing is said.

Source: collection.md §1.9, §2.5 to §2.7, §2.11, §2.12.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import (
    AGENT_REF_KEY,
    NG_TASK_ID_KEY,
    PROVENANCE_KEYS,
    RESPONSES_CREATE_PARAMS_KEY,
    SKILLS_REF_KEY,
    TASK_SOURCE_KEY,
)

_ROUTING: Final = frozenset({AGENT_REF_KEY, TASK_SOURCE_KEY, SKILLS_REF_KEY})
_SAMPLING: Final = frozenset(
    {
        *("model", "temperature", "top_p", "top_k", "min_p", "top_logprobs", "seed", "stop"),
        *("max_output_tokens", "max_tokens", "max_completion_tokens", "max_tool_calls"),
        *("reasoning", "reasoning_effort"),
        *("presence_penalty", "frequency_penalty", "repetition_penalty", "chat_template_kwargs", "service_tier"),
        *("parallel_tool_calls", "truncation", "store", "stream", "background", "include", "user"),
        *("prompt_cache_key", "safety_identifier"),
    }
)
_NAMES: Final = ("task_id", "problem_id", "instance_id")
_TASK_INPUT: Final = "task_input"
_METADATA: Final = "metadata"
_EXTRA_BODY: Final = "extra_body"
_DEFAULTS: Final[Mapping[str, object]] = {"tool_choice": "auto", "text": {"format": {"type": "text"}}}
_DEFAULTS_OF_ITEMS: Final[Mapping[str, object]] = {"type": "message", "status": "completed", "strict": True}
_DEEPEST: Final = 3
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def content_digest(row: JsonMapping) -> bytes:
    """Return the SHA-256 of what the row's task says, and of how a model is asked."""
    content = _without_bookkeeping(row)
    params = content.pop(RESPONSES_CREATE_PARAMS_KEY, None)
    said = without_seed(params)[0] if isinstance(params, Mapping) else params
    if said:
        content[RESPONSES_CREATE_PARAMS_KEY] = said
    return _digest(content)


def task_digest(row: JsonMapping) -> bytes:
    """Return the SHA-256 of what the row's task says: its prompt and every other field of a task."""
    return task_digests(row)[0]


def prompt_digest(row: JsonMapping) -> bytes | None:
    """Return the SHA-256 of what a model is told of the row's task; None of a row that does not say."""
    return task_digests(row)[1]


def task_digests(row: JsonMapping) -> tuple[bytes, bytes | None]:
    """Return both digests: of what the row's task says, and of its prompt."""
    content = _without_bookkeeping(row)
    prompt = _encoded_prompt(content)
    inner = content.get(_TASK_INPUT)
    if isinstance(inner, Mapping):
        own = dict(inner)
        prompt = _encoded_prompt(own) or prompt
        content[_TASK_INPUT] = own
    return _digest(content), None if prompt is None else hashlib.sha256(prompt).digest()


def other_fields(row: JsonMapping) -> Iterator[tuple[str, bytes]]:
    """Yield name and digest of each field of the row's task but its prompt; of fields in fields their whole path."""
    content = _without_bookkeeping(row)
    content.pop(RESPONSES_CREATE_PARAMS_KEY, None)
    left = [("", content, 0)]
    while left:
        path, fields, depth = left.pop()
        for key, value in fields.items():
            if isinstance(value, Mapping) and depth < _DEEPEST and key != RESPONSES_CREATE_PARAMS_KEY:
                left.append((f"{path}{key}.", dict(value), depth + 1))
            elif key != RESPONSES_CREATE_PARAMS_KEY:
                yield f"{path}{key}", hashlib.sha256(_ENCODER.encode(value)).digest()


def own_name(row: JsonMapping) -> str | None:
    """Return the name that the row's task has in its set: of `task_id`, `problem_id` and `instance_id` the first."""
    for key in (*_NAMES, NG_TASK_ID_KEY):
        name = row.get(key)
        if isinstance(name, Mapping):
            name = "/".join(str(name[part]) for part in ("taskset", "task_id") if name.get(part) is not None)
        if name is not None and name != "":
            return str(name)
    return None


def without_seed(params: JsonMapping) -> tuple[JsonObject, object]:
    """Return the parameters without their seed, and the seed; what holds nothing else is left out."""
    metadata = params.get(_METADATA)
    if not isinstance(metadata, Mapping):
        return dict(params), None
    extra_body = _decoded(metadata.get(_EXTRA_BODY))
    seed = extra_body.pop("seed", None) if isinstance(extra_body, dict) else None
    rest: JsonObject = {**metadata, _EXTRA_BODY: extra_body}
    if not extra_body:
        del rest[_EXTRA_BODY]
    others = {key: value for key, value in params.items() if key != _METADATA}
    return others | ({_METADATA: rest} if rest else {}), seed


def _without_bookkeeping(row: JsonMapping) -> JsonObject:
    return {key: value for key, value in row.items() if not _is_bookkeeping(key)}


def _is_bookkeeping(key: str) -> bool:
    return key in _ROUTING or (key.startswith("_ng_") and key not in PROVENANCE_KEYS)


def _encoded_prompt(content: JsonObject) -> bytes | None:
    """Return what a model is told, in its one form, which takes the place of what `content` holds of it."""
    params = content.pop(RESPONSES_CREATE_PARAMS_KEY, None)
    if not isinstance(params, Mapping):
        if params:
            content[RESPONSES_CREATE_PARAMS_KEY] = params
        return None
    said = _said(params)
    if not said:
        return None
    encoded = _ENCODER.encode(said)
    content[RESPONSES_CREATE_PARAMS_KEY] = msgspec.Raw(encoded)
    return encoded


def _said(params: JsonMapping) -> JsonObject:
    """Return what a model is told, in one form: without settings, and without what is null or empty."""
    told = _without_settings(params)
    metadata = told.pop(_METADATA, None)
    if isinstance(metadata, Mapping):
        extra = _decoded(metadata.get(_EXTRA_BODY))
        rest = {**metadata, _EXTRA_BODY: _without_settings(extra) if isinstance(extra, Mapping) else extra}
        told[_METADATA] = rest
    told = {key: _without_nothing(value) for key, value in told.items()}
    told["input"] = list(map(_item, _messages(told.get("input"))))
    if isinstance(tools := told.get("tools"), list):
        told["tools"] = list(map(_item, tools))
    return {key: value for key, value in told.items() if not _says_nothing(value) and _DEFAULTS.get(key) != value}


def _without_settings(params: JsonMapping) -> JsonObject:
    return {key: value for key, value in params.items() if key not in _SAMPLING}


def _messages(said: object) -> Iterable[object]:
    if isinstance(said, str):
        return [{"role": "user", "content": said}]
    return said if isinstance(said, list) else [] if said is None else [said]


def _item(item: object) -> object:
    """Return a message or a tool without what holds of it where nothing is said."""
    if not isinstance(item, Mapping):
        return item
    return {key: value for key, value in item.items() if _DEFAULTS_OF_ITEMS.get(key) != value}


def _without_nothing(value: object) -> object:
    """Return `value` without what is null or empty in objects in it, however deep."""
    if isinstance(value, Mapping):
        told = ((key, _without_nothing(inner)) for key, inner in value.items())
        return {key: inner for key, inner in told if not _says_nothing(inner)}
    return list(map(_without_nothing, value)) if isinstance(value, list) else value


def _says_nothing(value: object) -> bool:
    return value is None or value in ([], {}, "")


def _digest(content: JsonObject) -> bytes:
    return hashlib.sha256(_ENCODER.encode(content)).digest()


def _decoded(extra_body: object) -> object:
    """Return the object that the JSON string holds; what is none stays as it is."""
    try:
        return msgspec.json.decode(extra_body, type=dict[str, object]) if isinstance(extra_body, str) else extra_body
    except (msgspec.DecodeError, RecursionError):
        return extra_body

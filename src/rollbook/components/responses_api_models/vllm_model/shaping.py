"""What a chat request becomes before it goes to the endpoint; pure.

Rules:
* The steps run in the given order: a later one wins over an earlier one, and `sampling_overrides` over all.
* JSON text in `metadata` that is meant for this server is read and taken out.
* Nothing that was handed in is changed.

Source: servers.md §5.4, points 3 and 4.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from responses_api_models.vllm_model.model_config import VLLMModelConfig

_THINK = re.compile(r"<think>(.*?)</think>", re.DOTALL)
_HOSTED_ONLY = frozenset({"strict", "defer_loading"})
_OURS = ("chat_template_kwargs", "extra_body")


def shaped(config: VLLMModelConfig, asked: Mapping[str, Any], session_id: str) -> dict[str, object]:
    """The request for the endpoint, given a chat request dumped without unset fields."""
    body = without_our_metadata(asked)
    if asked.get("tools"):
        body["tools"] = [_plain_tool(tool) for tool in asked["tools"]]
    body["messages"] = shaped_messages(config, asked["messages"])
    body["model"] = config.model
    template = template_arguments(config, asked)
    body.pop("chat_template_kwargs", None)
    if template:
        body["chat_template_kwargs"] = template
    body = {**extra_body(config, asked), **body}
    if config.continue_final_assistant_message and asked["messages"][-1]["role"] == "assistant":
        body |= {"continue_final_message": True, "add_generation_prompt": False}
    return finished(config, body, session_id)


def finished(config: VLLMModelConfig, body: Mapping[str, object], session_id: str) -> dict[str, object]:
    """The last steps, which every path takes."""
    done = {key: value for key, value in body.items() if key != "top_logprobs" or value is not None}
    done |= config.sampling_overrides or {}
    if config.forward_session_id_as_conversation_id:
        done["conversation_params"] = {"conversation_id": session_id}
    return done


def without_our_metadata(asked: Mapping[str, Any]) -> dict[str, object]:
    """The request without the metadata that this server reads."""
    metadata = asked.get("metadata")
    if not metadata:
        return dict(asked)
    kept = {key: value for key, value in metadata.items() if key not in _OURS}
    body = {key: value for key, value in asked.items() if key != "metadata"}
    return {**body, "metadata": kept} if kept else body


def extra_body(config: VLLMModelConfig, asked: Mapping[str, Any]) -> dict[str, object]:
    """The base under the request: the configuration's, updated by the request's metadata."""
    return {**(config.extra_body or {}), **_json_in_metadata(asked, "extra_body")}


def template_arguments(config: VLLMModelConfig, asked: Mapping[str, Any]) -> dict[str, object]:
    """Arguments of the chat template: configuration, then request where that is allowed, then metadata."""
    requested = (asked.get("chat_template_kwargs") or {}) if config.forward_request_chat_template_kwargs else {}
    return {
        **(config.chat_template_kwargs or {}),
        **requested,
        **_json_in_metadata(asked, "chat_template_kwargs"),
    }


def _json_in_metadata(asked: Mapping[str, Any], key: str) -> dict[str, object]:
    text = (asked.get("metadata") or {}).get(key)
    if not text:
        return {}
    try:
        decoded = json.loads(text)
    except json.JSONDecodeError as error:
        msg = f"metadata.{key} is no JSON: {error}"
        raise ValueError(msg) from error
    if isinstance(decoded, dict):
        return decoded
    msg = f"metadata.{key} must be the JSON text of an object, and is {text!r}"
    raise ValueError(msg)


def _plain_tool(tool: Mapping[str, Any]) -> dict[str, object]:
    inner = {key: value for key, value in (tool.get("function") or {}).items() if key not in _HOSTED_ONLY}
    return {**tool, "function": inner} if "function" in tool else dict(tool)


def shaped_messages(config: VLLMModelConfig, messages: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    """The messages with roles and reasoning as the endpoint wants them."""
    return [_shaped_message(config, message) for message in messages]


def _shaped_message(config: VLLMModelConfig, message: Mapping[str, Any]) -> dict[str, object]:
    if message["role"] == "developer" and config.replace_developer_role_with_system:
        return {**message, "role": "system"}
    reads = config.uses_reasoning_parser and not config.preserve_reasoning_in_assistant_content
    if message["role"] == "assistant" and reads and isinstance(message.get("content"), str):
        return _with_reasoning_apart(config, message)
    return dict(message)


def _with_reasoning_apart(config: VLLMModelConfig, message: Mapping[str, Any]) -> dict[str, object]:
    found = _THINK.search(message["content"])
    if found is None:
        return dict(message)
    rest = message["content"][: found.start()] + message["content"][found.end() :]
    parted: dict[str, object] = {**message, "content": rest or None if message.get("tool_calls") else rest}
    if config.uses_interleaved_reasoning:
        names = ("reasoning_content", "reasoning") if config.reasoning_field == "both" else (config.reasoning_field,)
        parted |= dict.fromkeys(names, found[1])
    return parted


def ends_in_empty_assistant_turn(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the last message is an assistant's with neither content nor calls."""
    last = messages[-1] if messages else {"role": ""}
    return last["role"] == "assistant" and not last.get("content") and not last.get("tool_calls")

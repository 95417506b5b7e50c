"""What the model says, as a response of either dialect.

Rules:
* The same answer gives the same bytes: ids follow from what is answered, and no clock is read.
* Usage is filled in, at four characters a token, as a model's own count would be.

Source: servers.md §5.1.
"""

from typing import Final

from responses_api_models.simulated_model.chance import digest_of
from responses_api_models.simulated_model.conversation import Conversation
from responses_api_models.simulated_model.policy import Said
from rollbook import NeMoGymChatCompletion, NeMoGymResponse

_CHARS_PER_TOKEN: Final = 4
_PER_TURN: Final = 4
_EPOCH: Final = 0


def tokens_in(text: str) -> int:
    """Return how many tokens `text` is counted as."""
    return -(-len(text) // _CHARS_PER_TOKEN)


def prompt_tokens(conversation: Conversation) -> int:
    """Return how many tokens a request is counted as."""
    return sum(_PER_TURN + tokens_in(turn.text) for turn in conversation.turns)


def completion_tokens(said: Said) -> int:
    """Return how many tokens an answer is counted as."""
    return tokens_in(said.text) + sum(_PER_TURN + tokens_in(call.name + call.arguments) for call in said.calls)


def as_response(said: Said, conversation: Conversation, key: str, model: str) -> NeMoGymResponse:
    """Return a response with one message, or with the calls; `key` tells its ids from those of other answers."""
    ids = digest_of(key, said)[:24]
    text = {"type": "output_text", "text": said.text, "annotations": []}
    message = {"id": f"msg_{ids}", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    calls = [
        {
            "id": f"fc_{ids}_{number}",
            "type": "function_call",
            "call_id": f"call_{ids}_{number}",
            "name": call.name,
            "arguments": call.arguments,
            "status": "completed",
        }
        for number, call in enumerate(said.calls)
    ]
    return NeMoGymResponse.model_validate(
        {
            "id": f"resp_{ids}",
            "created_at": _EPOCH,
            "model": model,
            "object": "response",
            "status": "completed",
            "output": calls or [message],
            "parallel_tool_calls": conversation.calls_at_once,
            "tool_choice": "auto" if conversation.calls_allowed else "none",
            "tools": [],
            "usage": _response_usage(said, conversation),
        }
    )


def as_completion(said: Said, conversation: Conversation, key: str, model: str) -> NeMoGymChatCompletion:
    """Return a chat completion with one choice."""
    ids = digest_of(key, said)[:24]
    calls = [
        {
            "id": f"call_{ids}_{number}",
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for number, call in enumerate(said.calls)
    ]
    message: dict[str, object] = {"role": "assistant", "content": None if calls else said.text}
    if calls:
        message["tool_calls"] = calls
    prompt, completion = prompt_tokens(conversation), completion_tokens(said)
    return NeMoGymChatCompletion.model_validate(
        {
            "id": f"chatcmpl-{ids}",
            "object": "chat.completion",
            "created": _EPOCH,
            "model": model,
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
            "usage": {
                "prompt_tokens": prompt,
                "completion_tokens": completion,
                "total_tokens": prompt + completion,
            },
        }
    )


def _response_usage(said: Said, conversation: Conversation) -> dict[str, object]:
    prompt, completion = prompt_tokens(conversation), completion_tokens(said)
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + completion,
    }

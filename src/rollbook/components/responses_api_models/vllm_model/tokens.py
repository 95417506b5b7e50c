"""Token ids and log-probabilities of one completion, for training.

Rules:
* The first source that is complete is taken: the message itself, then the ids that the endpoint returned, then the
  log-probability entries and a call of the tokenizer for the prompt.
* Ids and log-probabilities that differ in number are an error, never cut to fit.

Source: servers.md §5.4, point 5.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

TOKEN_KEYS = ("prompt_token_ids", "generation_token_ids", "generation_log_probs")
_PREFIX = "token_id:"
_TOKENIZED = (
    "model",
    "messages",
    "prompt",
    "tools",
    "chat_template_kwargs",
    "mm_processor_kwargs",
    "required_prefix_token_ids",
)

Tokenize = Callable[[dict[str, object]], Awaitable[Sequence[int]]]


def asking_for_tokens(body: Mapping[str, Any], *, with_ids: bool) -> dict[str, object]:
    """The request with what makes the endpoint return tokens."""
    if body.get("n") not in {None, 1}:
        msg = f"token ids are returned for one answer per call; n is {body['n']}, set it to 1"
        raise ValueError(msg)
    wanted: dict[str, object] = {"logprobs": True, "top_logprobs": 0, "return_tokens_as_token_ids": True}
    return {**body, **wanted, **({"return_token_ids": True} if with_ids else {})}


def tokenize_request(body: Mapping[str, Any]) -> dict[str, object]:
    """What the tokenizer is asked about the prompt of a request."""
    return {key: body[key] for key in _TOKENIZED if body.get(key) is not None}


async def tokens_of(reply: Mapping[str, Any], body: Mapping[str, Any], tokenize: Tokenize) -> dict[str, object]:
    """The three token keys of a reply's only choice."""
    choice = reply["choices"][0]
    message = choice["message"]
    if all(message.get(key) is not None for key in TOKEN_KEYS):
        return {key: message[key] for key in TOKEN_KEYS}
    entries = (choice.get("logprobs") or {}).get("content") or []
    log_probs = [entry["logprob"] for entry in entries]
    prompt = _first(reply.get("prompt_token_ids"), choice.get("prompt_token_ids"))
    generated = choice.get("token_ids")
    if prompt is None or generated is None:
        generated = [_id_in(entry["token"]) for entry in entries]
        prompt = await tokenize(tokenize_request(body))
    if len(generated) != len(log_probs):
        msg = f"the endpoint returned {len(generated)} token ids and {len(log_probs)} log-probabilities for one answer"
        raise ValueError(msg)
    return dict(zip(TOKEN_KEYS, (list(prompt), list(generated), log_probs), strict=True))


def _first(*places: Sequence[int] | None) -> Sequence[int] | None:
    return next((place for place in places if place is not None), None)


def _id_in(token: str) -> int:
    if token.startswith(_PREFIX):
        return int(token.removeprefix(_PREFIX))
    msg = f"the endpoint named a token {token!r} instead of its id; does it support return_tokens_as_token_ids?"
    raise ValueError(msg)


def without_token_fields(reply: Mapping[str, Any], *, keep_logprobs: bool) -> dict[str, object]:
    """The reply without what the token keys say already."""
    dropped = {"token_ids", "prompt_token_ids"} | (set() if keep_logprobs else {"logprobs"})
    choices = [{key: value for key, value in choice.items() if key not in dropped} for choice in reply["choices"]]
    return {**{key: value for key, value in reply.items() if key != "prompt_token_ids"}, "choices": choices}

"""A model server that offers Responses over an endpoint with chat completions, such as vLLM or llama.cpp.

Rules:
* A Responses call is converted, answered as a chat call, and converted back; a native endpoint gets it as it is.
* A session stays with one replica.
* A full context is an answer cut off by length, unless the configuration wants it to fail.
* With token ids, every answer carries prompt ids, generated ids and log-probabilities, or the call fails.

Source: servers.md §5.2, servers.md §5.4.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from aiohttp import ClientResponseError
from fastapi import Request
from pydantic import PrivateAttr

from responses_api_models.vllm_model.audio import KEYS as AUDIO_KEYS
from responses_api_models.vllm_model.audio import with_audio
from responses_api_models.vllm_model.completions import chat_reply, completion_request
from responses_api_models.vllm_model.endpoints import Endpoints
from responses_api_models.vllm_model.model_config import VLLMModelConfig
from responses_api_models.vllm_model.replies import empty_completion, is_context_overflow, with_reasoning_in_content
from responses_api_models.vllm_model.shaping import (
    ends_in_empty_assistant_turn,
    extra_body,
    finished,
    shaped,
    without_our_metadata,
)
from responses_api_models.vllm_model.tokens import asking_for_tokens, tokens_of, without_token_fields
from rollbook import (
    SESSION_ID_KEY,
    NeMoGymAsyncOpenAI,
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    ResponsesConverter,
    SimpleResponsesAPIModel,
)

__all__ = ["VLLMModel", "VLLMModelConfig"]

_LOG = logging.getLogger(__name__)


class VLLMModel(SimpleResponsesAPIModel):
    """Responses and chat completions over one endpoint or several replicas of it."""

    config: VLLMModelConfig

    _endpoints: Endpoints = PrivateAttr()
    _converter: ResponsesConverter = PrivateAttr()
    _warned: bool = PrivateAttr(default=False)

    def model_post_init(self, context: object, /) -> None:
        """Make converter and endpoints; nothing is connected to yet."""
        super().model_post_init(context)
        self._endpoints = Endpoints(self.config)
        self._converter = ResponsesConverter(
            return_token_id_information=self.config.return_token_id_information,
            uses_reasoning_parser=self.config.uses_reasoning_parser,
        )

    async def responses(self, request: Request, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        """Answer a Responses request."""
        if self.config.is_responses_native:
            return await self._native_response(request, body)
        chat = self._converter.responses_to_chat_completion_create_params(body)
        completion = await self.chat_completions(request, chat)
        return self._converter.chat_completion_to_response(body, completion)

    async def chat_completions(
        self, request: Request, body: NeMoGymChatCompletionCreateParamsNonStreaming
    ) -> NeMoGymChatCompletion:
        """Answer a chat completion request."""
        asked = body.model_dump(exclude_unset=True)
        if not self.config.sequential_reasoning_allowed and ends_in_empty_assistant_turn(asked["messages"]):
            return NeMoGymChatCompletion.model_validate(empty_completion(self.config.model, "content_filter"))
        self._warn_of_dropped_arguments(asked)
        if any(key in (asked.get("metadata") or {}) for key in AUDIO_KEYS):
            asked = await asyncio.to_thread(with_audio, asked, self.config.audio_root)
        client = await self._client_of(request)
        reply = await self._exchange(client, shaped(self.config, asked, _session_of(request)), asked)
        return NeMoGymChatCompletion.model_validate(reply)

    async def _client_of(self, request: Request) -> NeMoGymAsyncOpenAI:
        return self._endpoints.client_of(_session_of(request))

    async def _native_response(
        self, request: Request, body: NeMoGymResponseCreateParamsNonStreaming
    ) -> NeMoGymResponse:
        asked = {key: value for key, value in body.model_dump(exclude_unset=True).items() if value is not None}
        base = {**extra_body(self.config, asked), **without_our_metadata(asked), "model": self.config.model}
        client = await self._client_of(request)
        reply = await client.create_response(**finished(self.config, base, _session_of(request)))
        return NeMoGymResponse.model_validate(reply)

    async def _exchange(
        self, client: NeMoGymAsyncOpenAI, body: Mapping[str, Any], asked: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        wants_tokens = self.config.return_token_id_information
        if wants_tokens:
            body = asking_for_tokens(body, with_ids=self.config.request_prompt_and_generation_token_ids)
        if self.config.use_completions_api:
            body = completion_request(body)
        try:
            reply = await self._ask(client, body)
        except ClientResponseError as error:
            content = getattr(error, "response_content", None) or b""
            if self.config.propagate_context_overflow_errors or not is_context_overflow(error.status, content):
                raise
            _LOG.info("the context is full, and the answer ends by length: %.200r", content)
            return empty_completion(self.config.model, "length")
        if not wants_tokens:
            return self._with_content(reply, body)

        async def tokenize(question: dict[str, object]) -> Sequence[int]:
            answer: Mapping[str, Any] = await client.create_tokenize(**question)
            found: Sequence[int] = answer["tokens"]
            return found

        tokens = await tokens_of(reply, body, tokenize)
        kept = without_token_fields(reply, keep_logprobs=bool(asked.get("logprobs")))
        return self._with_content(kept, body, tokens)

    async def _ask(self, client: NeMoGymAsyncOpenAI, body: Mapping[str, Any]) -> Mapping[str, Any]:
        if self.config.use_completions_api:
            return chat_reply(await client.create_completion(**body))
        return await client.create_chat_completion(**body)

    def _with_content(
        self, reply: Mapping[str, Any], body: Mapping[str, Any], tokens: Mapping[str, object] | None = None
    ) -> Mapping[str, Any]:
        continued = bool(body.get("continue_final_message"))
        parser = self.config.uses_reasoning_parser
        choices = [
            {
                **choice,
                "message": {
                    **with_reasoning_in_content(choice["message"], uses_reasoning_parser=parser, continued=continued),
                    **(tokens or {}),
                },
            }
            for choice in reply["choices"]
        ]
        return {**reply, "choices": choices}

    def _warn_of_dropped_arguments(self, asked: Mapping[str, Any]) -> None:
        if self._warned or self.config.forward_request_chat_template_kwargs or not asked.get("chat_template_kwargs"):
            return
        self._warned = True
        _LOG.warning(
            "chat_template_kwargs of a request is dropped; set forward_request_chat_template_kwargs: true to pass it on"
        )


def _session_of(request: Request) -> str:
    return str(request.session[SESSION_ID_KEY])


if __name__ == "__main__":
    VLLMModel.run_webserver()

"""A model server in front of any endpoint that speaks the Responses dialect.

Rules:
* The request goes on as it came: the configured model where it names none, and the configured extra fields on top.
* Null says the same as absent, and is not sent.

Source: servers.md §5.3.
"""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager, nullcontext

from pydantic import Field, PrivateAttr

from rollbook import (
    BaseResponsesAPIModelConfig,
    NeMoGymAsyncOpenAI,
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    SimpleResponsesAPIModel,
)


class OpenAIModelConfig(BaseResponsesAPIModelConfig):
    """The endpoint, and how it is asked. `max_concurrent_requests` bounds the calls in flight; null does not."""

    openai_base_url: str
    openai_api_key: str = Field(repr=False)
    openai_model: str
    extra_body: dict[str, object] = Field(default_factory=dict)
    openai_default_headers: dict[str, str] = Field(default_factory=dict)
    max_http_attempts: int = Field(default=3, ge=1)
    max_concurrent_requests: int | None = Field(default=None, ge=1)
    drop_input_reasoning_items: bool = False


class OpenAIModel(SimpleResponsesAPIModel):
    """Passes Responses and chat completion requests on."""

    config: OpenAIModelConfig

    _client: NeMoGymAsyncOpenAI = PrivateAttr()
    _places: AbstractAsyncContextManager[object] = PrivateAttr()

    def model_post_init(self, context: object, /) -> None:
        """Make the client; nothing is connected to yet."""
        super().model_post_init(context)
        limit = self.config.max_concurrent_requests
        self._places = asyncio.Semaphore(limit) if limit else nullcontext()
        self._client = NeMoGymAsyncOpenAI(
            base_url=self.config.openai_base_url,
            api_key=self.config.openai_api_key,
            max_http_attempts=self.config.max_http_attempts,
            default_headers=self.config.openai_default_headers,
        )

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        """Ask for a response."""
        asked = self._asked(body.model_dump(exclude_unset=True))
        if self.config.drop_input_reasoning_items and isinstance(asked["input"], list):
            asked["input"] = [item for item in asked["input"] if item.get("type") != "reasoning"]
        async with self._places:
            answer = await self._client.create_response(**asked)
        return NeMoGymResponse.model_validate(answer)

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming) -> NeMoGymChatCompletion:
        """Ask for a chat completion."""
        asked = self._asked(body.model_dump(exclude_unset=True))
        async with self._places:
            answer = await self._client.create_chat_completion(**asked)
        return NeMoGymChatCompletion.model_validate(answer)

    def _asked(self, body: Mapping[str, object]) -> dict[str, object]:
        given = {key: value for key, value in body.items() if value is not None}
        return {"model": self.config.openai_model, **given, **self.config.extra_body}


if __name__ == "__main__":
    OpenAIModel.run_webserver()

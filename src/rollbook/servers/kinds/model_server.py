"""The base of model servers: three dialects in front of two methods.

Rules:
* A subclass answers `responses` and `chat_completions`; whether it is handed the request is read from its signature.
* A body with a field that its dialect does not have is answered 422, before anything is asked of a model.
* Streaming replays a finished answer; a failure before headers are due keeps its HTTP status where the dialect allows.

Source: servers.md §3.9.
"""

import asyncio
import functools
import inspect
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, TypeVar

import orjson
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from rollbook.config.types import BaseRunServerInstanceConfig
from rollbook.records.json_values import JsonObject
from rollbook.servers.base import SimpleServer
from rollbook.servers.kinds import streaming_chat, streaming_messages, streaming_responses
from rollbook.servers.kinds.model_server_messages import MessagesCreateParams, messages_reply, responses_request
from rollbook.servers.kinds.model_server_text import reply_bytes
from rollbook.servers.kinds.streaming_sse import fails_early, streamed
from rollbook.servers.openai.openai_chat import NeMoGymChatCompletion, NeMoGymChatCompletionCreateParamsNonStreaming
from rollbook.servers.openai.openai_response import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming

Params = TypeVar("Params", bound=BaseModel)
Answer = TypeVar("Answer", bound=BaseModel)


class BaseResponsesAPIModelConfig(BaseRunServerInstanceConfig):
    """The configuration that every model server has."""


async def _json_object(request: Request) -> Mapping[str, Any]:
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError as error:
        raise _invalid("json_invalid", f"the body is no JSON: {error}", ()) from error
    if isinstance(body, dict):
        return body
    raise _invalid("dict_type", "the body must be a JSON object", ())


def _invalid(kind: str, message: str, where: tuple[str, ...]) -> RequestValidationError:
    return RequestValidationError([{"type": kind, "loc": ("body", *where), "msg": message, "input": None}])


def _validated(model: type[Params], body: Mapping[str, Any]) -> Params:
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise _refused(error) from error


def _refused(error: ValidationError) -> RequestValidationError:
    details = error.errors(include_url=False, include_context=False)
    return RequestValidationError([{**detail, "loc": ("body", *detail["loc"])} for detail in details])


def _json_reply(answer: BaseModel | Mapping[str, Any]) -> Response:
    return Response(reply_bytes(answer), media_type="application/json")


def _takes_request(method: Callable[..., Any]) -> bool:
    return _names_request(getattr(method, "__func__", method))


@functools.cache
def _names_request(function: Callable[..., Any]) -> bool:
    parameters = inspect.signature(function).parameters.values()
    return any(parameter.name == "request" or parameter.annotation is Request for parameter in parameters)


def _responses_request(params: MessagesCreateParams) -> NeMoGymResponseCreateParamsNonStreaming:
    try:
        return responses_request(params)
    except ValidationError as error:
        raise _refused(error) from error


class SimpleResponsesAPIModel(SimpleServer):
    """A model server. `responses(body)` or `responses(request, body)`, and `chat_completions` the same way.

    `non_generating_model_routes` names further routes, as (method, path), that cannot produce policy tokens.
    """

    config: BaseResponsesAPIModelConfig
    non_generating_model_routes: ClassVar[frozenset[tuple[str, str]]] = frozenset()

    @abstractmethod
    async def responses(self, *args: Any, **kwargs: Any) -> NeMoGymResponse:
        """Answer a Responses request."""

    @abstractmethod
    async def chat_completions(self, *args: Any, **kwargs: Any) -> NeMoGymChatCompletion:
        """Answer a chat completion request."""

    def setup_webserver(self) -> FastAPI:
        """The application with the routes of the three dialects."""
        app = FastAPI()
        self.setup_session_middleware(app)
        self.setup_rollout_context_middleware(app)
        app.post("/v1/responses")(self._serve_responses)
        app.post("/v1/chat/completions")(self._serve_chat)
        app.post("/v1/messages")(self._serve_messages)
        return app

    async def _serve_responses(self, request: Request) -> Response:
        body = await _json_object(request)
        if not body.get("stream"):
            params = _validated(NeMoGymResponseCreateParamsNonStreaming, body)
            return _json_reply(await self._respond(request, params))
        _validated(streaming_responses.StreamedParams, body)
        plain = streaming_responses.plain_request(body)
        params = _validated(NeMoGymResponseCreateParamsNonStreaming, plain.body)
        return streamed(
            asyncio.ensure_future(self._respond(request, params)),
            lambda response: streaming_responses.response_events(response, plain.namespaces),
            lambda failure: streaming_responses.failed_events(failure, params.model),
        )

    async def _serve_chat(self, request: Request) -> Response:
        body = await _json_object(request)
        if body.get("stream") is not True:
            params = _validated(NeMoGymChatCompletionCreateParamsNonStreaming, body)
            return _json_reply(await self._complete(request, params))
        params = _validated(NeMoGymChatCompletionCreateParamsNonStreaming, streaming_chat.plain_request(body))
        with_usage = streaming_chat.includes_usage(body)
        call = asyncio.ensure_future(self._complete(request, params))
        if await fails_early(call):
            call.result()
        return streamed(
            call,
            lambda completion: streaming_chat.chat_events(completion, with_usage),
            streaming_chat.failed_events,
        )

    async def _serve_messages(self, request: Request) -> Response:
        body = await _json_object(request)
        streams = bool(body.get("stream"))
        plain = {key: value for key, value in body.items() if key != "stream"} if streams else body
        params = _responses_request(_validated(MessagesCreateParams, plain))
        call = asyncio.ensure_future(self._reply(request, params))
        if not streams:
            return _json_reply(await call)
        if await fails_early(call):
            call.result()
        return streamed(call, streaming_messages.message_events, streaming_messages.failed_events)

    async def _reply(self, request: Request, params: NeMoGymResponseCreateParamsNonStreaming) -> JsonObject:
        return messages_reply(await self._respond(request, params))

    async def _respond(self, request: Request, params: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        return await _called(self.responses, NeMoGymResponse, request, params)

    async def _complete(
        self, request: Request, params: NeMoGymChatCompletionCreateParamsNonStreaming
    ) -> NeMoGymChatCompletion:
        return await _called(self.chat_completions, NeMoGymChatCompletion, request, params)


async def _called(
    method: Callable[..., Awaitable[Any]], answers: type[Answer], request: Request, params: BaseModel
) -> Answer:
    answer = await (method(request, params) if _takes_request(method) else method(params))
    return answer if isinstance(answer, answers) else answers.model_validate(answer)

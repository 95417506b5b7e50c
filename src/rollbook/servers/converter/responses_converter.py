"""Between the Responses dialect and the Chat dialect, both ways.

Rules:
* Each direction is a function over JSON in its own module; this class is where they meet the typed shapes.
* Nothing is dropped in silence: what the other dialect cannot say raises `NotImplementedError` with its name.

Source: servers.md §5.2.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter

from rollbook.servers.converter.responses_converter_reply import cut_thoughts, output_items, response_json
from rollbook.servers.converter.responses_converter_request import chat_params
from rollbook.servers.converter.responses_converter_reverse import first_model_made, responses_items, responses_params
from rollbook.servers.openai.openai_chat import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymChoice,
)
from rollbook.servers.openai.openai_response import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from rollbook.servers.openai.openai_unions import NeMoGymResponseInput, NeMoGymResponseOutputItem

Item = TypeVar("Item")

_INPUT: TypeAdapter[NeMoGymResponseInput] = TypeAdapter(NeMoGymResponseInput)
_OUTPUT: TypeAdapter[list[NeMoGymResponseOutputItem]] = TypeAdapter(list[NeMoGymResponseOutputItem])


def chat_completion_to_responses_create_params(
    params: NeMoGymChatCompletionCreateParamsNonStreaming,
) -> NeMoGymResponseCreateParamsNonStreaming:
    """The Responses request that asks for what a chat request asks for."""
    request = responses_params(params.model_dump(exclude_unset=True))
    return NeMoGymResponseCreateParamsNonStreaming.model_validate(request)


def chat_completions_messages_to_responses_items(messages: Iterable[Mapping[str, Any]]) -> NeMoGymResponseInput:
    """Chat messages as Responses items."""
    return _INPUT.validate_python(responses_items(messages))


def split_responses_input_output_items(items: Sequence[Item]) -> tuple[list[Item], list[Item]]:
    """Items before, and items from, the first one that the model made."""
    cut = first_model_made(items)
    return list(items[:cut]), list(items[cut:])


class ResponsesConverter(BaseModel):
    """Responses over chat completions.

    `return_token_id_information` carries token ids and log-probabilities along; `uses_reasoning_parser` reads
    `<think>…</think>` in an answer as reasoning.
    """

    return_token_id_information: bool
    uses_reasoning_parser: bool = True

    def responses_to_chat_completion_create_params(
        self, responses_create_params: NeMoGymResponseCreateParamsNonStreaming
    ) -> NeMoGymChatCompletionCreateParamsNonStreaming:
        """The chat request that asks for what a Responses request asks for."""
        request = responses_create_params.model_dump(exclude_unset=True)
        params = chat_params(request, self.return_token_id_information)
        return NeMoGymChatCompletionCreateParamsNonStreaming.model_validate(params)

    def chat_completion_to_response(
        self,
        responses_create_params: NeMoGymResponseCreateParamsNonStreaming,
        chat_completion: NeMoGymChatCompletion,
        preserve_envelope_id: bool = False,
    ) -> NeMoGymResponse:
        """The response that a chat completion is, with the request echoed."""
        items = output_items(chat_completion.choices[0], self.uses_reasoning_parser)
        response = response_json(responses_create_params, chat_completion, items)
        if preserve_envelope_id:
            response["id"] = chat_completion.id
        return NeMoGymResponse.model_validate(response)

    def postprocess_chat_response(self, choice: NeMoGymChoice) -> list[NeMoGymResponseOutputItem]:
        """The output items of one choice."""
        return _OUTPUT.validate_python(output_items(choice, self.uses_reasoning_parser))

    def postprocess_assistant_message_dict(self, message_dict: Mapping[str, Any]) -> list[NeMoGymResponseOutputItem]:
        """The output items of one assistant message in the Chat dialect."""
        choice = {"index": 0, "finish_reason": "stop", "message": dict(message_dict)}
        return self.postprocess_chat_response(NeMoGymChoice.model_validate(choice))

    def chat_completion_to_responses_create_params(
        self, params: NeMoGymChatCompletionCreateParamsNonStreaming
    ) -> NeMoGymResponseCreateParamsNonStreaming:
        """The function of the same name."""
        return chat_completion_to_responses_create_params(params)

    def chat_completions_messages_to_responses_items(
        self, messages: Iterable[Mapping[str, Any]]
    ) -> NeMoGymResponseInput:
        """The function of the same name."""
        return chat_completions_messages_to_responses_items(messages)

    def _extract_reasoning_from_content(self, content: str) -> tuple[list[str], str]:
        """What stands in `<think>…</think>`, and the text without it; model servers of the field call it."""
        return cut_thoughts(content)

    @staticmethod
    def _wrap_reasoning_in_think_tags(texts: Iterable[str]) -> str:
        """Each text in `<think>…</think>`, one after the other; model servers and agents of the field call it."""
        return "".join(f"<think>{text}</think>" for text in texts)

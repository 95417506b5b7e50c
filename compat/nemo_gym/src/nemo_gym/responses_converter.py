"""Between the Responses and the Chat Completions dialect."""

from rollbook import (
    AssistantTurn as VLLMConverterResponsesToChatCompletionsState,  # noqa: F401  the field's name of it
    ResponsesConverter as ResponsesConverter,
    ResponsesConverter as VLLMConverter,  # noqa: F401  the field's earlier name of it
    chat_completion_to_responses_create_params as chat_completion_to_responses_create_params,
    chat_completions_messages_to_responses_items as chat_completions_messages_to_responses_items,
    split_responses_input_output_items as split_responses_input_output_items,
)

"""The configuration of `vllm_model`.

Rules:
* Every key has the field's name and default; a combination that cannot work is refused when it is read.

Source: servers.md §5.4.
"""

import os
from typing import Literal, Self

from pydantic import Field, model_validator

from rollbook import BaseResponsesAPIModelConfig

ReasoningField = Literal["both", "reasoning", "reasoning_content"]


def _reasoning_field() -> str:
    return os.environ.get("NEMO_GYM_REASONING_FIELD", "both")


class VLLMModelConfig(BaseResponsesAPIModelConfig):
    """One endpoint or several replicas of it, and how requests are shaped for it; times are in seconds."""

    base_url: str | list[str]
    api_key: str = Field(repr=False)
    model: str
    return_token_id_information: bool
    uses_reasoning_parser: bool
    request_prompt_and_generation_token_ids: bool = False
    propagate_context_overflow_errors: bool = False
    uses_interleaved_reasoning: bool = True
    reasoning_field: ReasoningField = Field(default_factory=_reasoning_field, validate_default=True)
    preserve_reasoning_in_assistant_content: bool = False
    replace_developer_role_with_system: bool = False
    sequential_reasoning_allowed: bool = True
    supply_prefix_token_ids: bool = False
    is_responses_native: bool = False
    chat_template_kwargs: dict[str, object] | None = None
    forward_request_chat_template_kwargs: bool = False
    continue_final_assistant_message: bool = False
    sampling_overrides: dict[str, object] | None = None
    extra_body: dict[str, object] | None = None
    default_headers: dict[str, str] = Field(default_factory=dict)
    max_http_attempts: int = Field(default=3, ge=1)
    endpoint_file: str | None = None
    endpoint_stale_grace_s: float = 300.0
    endpoint_connection_retries: int = 8
    endpoint_check_interval_s: float = 10.0
    forward_session_id_as_conversation_id: bool = False
    audio_root: str | None = None
    use_completions_api: bool = False
    render_chat_template: bool = False
    tokenizer: str | None = None

    @model_validator(mode="after")
    def _can_work(self) -> Self:
        if not self.base_url and not self.endpoint_file:
            msg = "base_url is empty: give the endpoint's URL, a list of them, or an endpoint_file"
            raise ValueError(msg)
        if self.supply_prefix_token_ids:
            msg = "supply_prefix_token_ids needs token capture, which is not served here; set it to false"
            raise ValueError(msg)
        if self.render_chat_template:
            msg = "render_chat_template needs a tokenizer library, which is not used here; set it to false"
            raise ValueError(msg)
        return self

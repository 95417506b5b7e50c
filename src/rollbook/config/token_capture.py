"""The block `token_id_capture`: how token ids of a rollout's model calls would be kept.

Rules:
* The block is read and checked as a whole; no server of ours keeps token ids, and one that asks for it is told so.

Source: servers.md §11.2.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from rollbook.config.key_names import MODEL_CALL_CAPTURE_DIR_KEY_NAME, TOKEN_ID_CAPTURE_BLOCK

_LOG: Final = logging.getLogger(__name__)


class TokenIdCapture(BaseModel):
    """Where token ids go, and what is made of them. `sink` and `lineage_store` are named as `module:Class`."""

    model_config = ConfigDict(extra="forbid")

    enabled: bool = False
    all_agents: bool = False
    dir: str | None = None
    sink: str | None = None
    sink_kwargs: dict[str, Any] = Field(default_factory=dict)
    lineage_store: str | None = None
    lineage_store_kwargs: dict[str, Any] = Field(default_factory=dict)
    rebuild_response: bool = True
    allow_unresolved_continuations: bool = False
    delta_records: bool = False
    max_mask_fraction: float | None = Field(default=None, ge=0, le=1)
    mask_fraction_min_samples: int = 50
    external_staging: bool = False
    external_staging_backend: Literal["vllm_worker", "megatron_worker"] = "vllm_worker"
    control_auth_token_env: str = "NEMO_GYM_TOKEN_CAPTURE_CONTROL_TOKEN"  # noqa: S105  a variable's name

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.sink and not (self.lineage_store or self.allow_unresolved_continuations):
            raise ValueError("a `sink` of one's own needs a `lineage_store`, or `allow_unresolved_continuations: true`")
        if self.external_staging and (self.rebuild_response or not self.enabled):
            raise ValueError("`external_staging` needs `enabled: true` and `rebuild_response: false`")
        return self


class TokenIdCaptureConfig(BaseModel):
    """What the top level of a configuration says of the capture of token ids."""

    token_id_capture: TokenIdCapture = Field(default_factory=TokenIdCapture)
    model_call_capture_dir: str | None = None

    @model_validator(mode="after")
    def _has_a_place(self) -> Self:
        block = self.token_id_capture
        if block.enabled and block.rebuild_response and not (block.sink or block.dir or self.model_call_capture_dir):
            raise ValueError("`token_id_capture` needs a `dir` or a `sink` to rebuild responses from")
        return self


def token_id_capture_config(config: Mapping[str, Any]) -> TokenIdCaptureConfig:
    """Return what the top level of `config` says of the capture of token ids.

    Raises:
        ValidationError: a key that the block does not have, or values that do not go together.

    """
    keys = (TOKEN_ID_CAPTURE_BLOCK, MODEL_CALL_CAPTURE_DIR_KEY_NAME)
    read = TokenIdCaptureConfig.model_validate({key: config[key] for key in keys if config.get(key) is not None})
    if read.token_id_capture.enabled:
        _LOG.warning("`token_id_capture.enabled` asks for token ids of model calls: servers here keep none")
    return read

"""Prompt templates, and rows made of them."""

from rollbook import (
    PromptConfig as PromptConfig,
    apply_prompt_to_row as apply_prompt_to_row,
    fill_prompt as fill_prompt,
    load_prompt_config as load_prompt_config,
)

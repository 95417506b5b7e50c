"""What a judge is shown, and how its verdict is read.

Rules:
* The verdict is the label that stands last in the judge's text; without a label there is no verdict.
* A template's placeholders are filled once: braces in a question or an answer are text.

Source: servers.md §7.3 (12).
"""

import re
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel

from rollbook import NeMoGymEasyInputMessage, NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming

_PLACEHOLDER: Final = re.compile(r"\{(question|expected_answer|generated_answer)\}")


class Labels(BaseModel):
    """What a judge ends with."""

    equal: str
    not_equal: str


class JudgeEvaluation(BaseModel):
    """One question to the judge, and what it answered; `verdict_label` is null when it gave no verdict."""

    responses_create_params: NeMoGymResponseCreateParamsNonStreaming
    response: NeMoGymResponse
    verdict_label: str | None


def judge_request(
    params: NeMoGymResponseCreateParamsNonStreaming, template: str, fields: Mapping[str, str], system: str | None
) -> NeMoGymResponseCreateParamsNonStreaming:
    """Return `params` with the filled template as its input."""
    text = _PLACEHOLDER.sub(lambda found: fields[found[1]], template)
    messages = [NeMoGymEasyInputMessage(role="user", content=text)]
    if system:
        messages.insert(0, NeMoGymEasyInputMessage(role="system", content=system))
    return params.model_copy(update={"input": messages})


def verdict(text: str, labels: Labels) -> str | None:
    """Return the label that stands last in a judge's text."""
    places = {label: text.rfind(label) for label in (labels.equal, labels.not_equal)}
    last = max(places, key=lambda label: places[label])
    return last if places[last] >= 0 else None

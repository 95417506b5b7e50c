r"""Graduate-level multiple choice, as GPQA Diamond asks it: the reward is 1 when the letter given is the row's.

Rules:
* The letter is the one in the last `\boxed{…}`, read strictly; without one, the one after the last `Answer:`.
* Only an option's letter is an answer; a row that lists no options has A to D.
* A row's own grading mode and pattern are not looked at.

Source: servers.md §7.3 (24).
"""

import re
from collections.abc import Collection
from typing import Final

from resources_servers.mcqa.app import (
    MCQAResourcesServer,
    MCQAResourcesServerConfig,
    MCQAVerifyRequest,
    MCQAVerifyResponse,
)
from resources_servers.mcqa.grading import GradingMode, Question, chosen_letter, option_texts

UNNAMED: Final = {"A": "", "B": "", "C": "", "D": ""}
_LABELLED: Final = re.compile(r"(?i:answer)\s*:\**\s*(?:\\boxed\{)?(?:([A-Z])\b|([a-z])\s*(?:[.):,}]|$))", re.MULTILINE)


class GPQADiamondResourcesServerConfig(MCQAResourcesServerConfig):
    """What `mcqa` takes; `grading_mode` changes nothing here."""


class GPQADiamondResourcesServer(MCQAResourcesServer):
    """Grades answers to GPQA Diamond's questions."""

    config: GPQADiamondResourcesServerConfig

    async def verify(self, body: MCQAVerifyRequest) -> MCQAVerifyResponse:
        """Return the row with reward 1 or 0."""
        options = option_texts(body.options) or UNNAMED
        text = body.response.output_text
        letter = chosen_letter(text, Question(options), GradingMode.STRICT_SINGLE_LETTER_BOXED)
        found = letter or labelled_letter(text, options)
        right = found == body.expected_answer.strip().upper()
        row = dict(body)
        return MCQAVerifyResponse(**(row | {"reward": float(right), "extracted_answer": found}))


def labelled_letter(text: str, options: Collection[str]) -> str | None:
    """Return the option's letter that stands after the last `Answer:`, None when none does."""
    letters = [(found[1] or found[2]).upper() for found in _LABELLED.finditer(text)]
    return letters[-1] if letters and letters[-1] in options else None


if __name__ == "__main__":
    GPQADiamondResourcesServer.run_webserver()

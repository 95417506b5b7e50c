"""What a person is told of files that are damaged: before a resume is refused, and after it went on all the same.

Rules:
* What to type next is said once, and only where it can still be typed.
"""

import re
from collections.abc import Sequence
from typing import Final

_NAMED: Final = 20
_ANYWAY: Final = "+allow_unsafe_resume=true"
_GO_ON: Final = f"Mend what is named. To go on with what can be read, resume with {_ANYWAY}"
_ADVICE: Final = re.compile(r"(?s)[.;] (?:[Rr]estore|[Tt]o (?:go on|run again))\b.*")


def refusal(damage: Sequence[str]) -> str:
    """Return why a run whose files are damaged is not gone on with, and what to do."""
    named = damage[:_NAMED]
    more = [f"… and {len(damage) - _NAMED} more"] if len(damage) > _NAMED else []
    return "\n".join([*named, *more, *([] if any(_ANYWAY in told for told in named) else [_GO_ON])])


def gone_on_over(damage: Sequence[str]) -> list[str]:
    """Return what is told of damage once a run went on over it."""
    return [f"resumed all the same: {_ADVICE.sub('', told)}" for told in damage[:_NAMED]]

r"""The answer in a text, and what the generator of its puzzle gives for it.

Rules:
* An `<answer>` tag wins over a `\boxed{…}`, and without either the whole text is the answer.
* What a score function raises on an answer is the answer's fault: it scores nothing.
* A data set that no generator has is the row's fault, and raises.

Source: servers.md §7.3 (7).
"""

import logging
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from rollbook import MissingPackageError

_LOG = logging.getLogger(__name__)
_TAG: Final = re.compile(r"<answer>\s*(.*?)\s*</answer>", re.DOTALL)
_BOX: Final = re.compile(r"\\boxed\{([^}]+)\}")

Score = Callable[[str | None, Mapping[str, Any]], float]


def extracted_answer(text: str) -> str:
    """Return what `text` answers: the last tag, else the first box, else all of it."""
    tags = _TAG.findall(text)
    if tags:
        return str(tags[-1])
    box = _BOX.search(text)
    return box[1] if box else text


def require_generators() -> None:
    """Import the generators.

    Raises:
        MissingPackageError: they are not installed.

    """
    try:
        import reasoning_gym  # noqa: F401, PLC0415  an extra package, wanted when a server starts and not before
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"resources_servers/reasoning_gym needs the package {error.name!r}, which is not installed; "
            "run: pip install 'rollbook[reasoning-gym]'"
        ) from error


@lru_cache(maxsize=256)
def score_function(source_dataset: str) -> Score:
    """Return the score function of a generator.

    Raises:
        ValueError: there is no such generator.

    """
    from reasoning_gym import get_score_answer_fn  # noqa: PLC0415  an extra package, see `require_generators`

    try:
        score: Score = get_score_answer_fn(source_dataset)
    except (ValueError, AssertionError) as error:
        raise ValueError(f"metadata.source_dataset {source_dataset!r} has no score function: {error}") from error
    return score


def score_of(answer: str, source_dataset: str, entry: Mapping[str, Any]) -> float:
    """Return the score of `answer` to the row `entry`, which has question, answer and metadata.

    Raises:
        ValueError: there is no such generator.

    """
    score = score_function(source_dataset)
    try:
        value = float(score(answer, entry))
    except Exception:  # noqa: BLE001  a boundary: a hundred generators, each with ways of its own to reject an answer
        _LOG.debug("the score function of %s raised on an answer", source_dataset, exc_info=True)
        return 0.0
    return value if math.isfinite(value) else 0.0

r"""The answer in a text, and what the generator of its puzzle gives for it.

Rules:
* An `<answer>` tag wins over a `\boxed{…}`, and without either the whole text is the answer.
* What a score function raises on an answer is the answer's fault: it scores nothing.
* A data set that no generator has is the row's fault, and raises.

Source: servers.md §7.3 (7).
"""

import logging
import math
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from rollbook import MissingPackageError

_LOG = logging.getLogger(__name__)
_OPENED, _CLOSED = "<answer>", "</answer>"
_BOX: Final = "\\boxed{"

Score = Callable[[str | None, Mapping[str, Any]], float]


def extracted_answer(text: str) -> str:
    """Return what `text` answers: the last tag, else the first box that is not empty, else all of it."""
    tagged = _last_tagged(text)
    if tagged is not None:
        return tagged
    return _first_boxed(text) or text


def _last_tagged(text: str) -> str | None:
    """Return what the last pair of tags holds; each tag is looked for once, however many stay open."""
    found, start = None, text.find(_OPENED)
    while start >= 0:
        first = start + len(_OPENED)
        end = text.find(_CLOSED, first)
        if end < 0:
            break
        found = text[first:end].strip()
        start = text.find(_OPENED, end)
    return found


def _first_boxed(text: str) -> str | None:
    start = text.find(_BOX)
    while start >= 0:
        first = start + len(_BOX)
        end = text.find("}", first)
        if end != first:
            return text[first:end] if end > first else None
        start = text.find(_BOX, end)
    return None


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

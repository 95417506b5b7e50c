"""What inspect_ai's scorers said of a sample → the reward, and every score as a field.

Rules:
* Letters, words, flags and numbers are worth what inspect's `value_to_float` makes of them: C 1, P 0.5, I and N 0, yes
  and true 1, no and false 0. What is no number to it, and what is not finite, is no reward: the rollout is unscored.
* Which scorer rewards is never guessed where there are several; a scorer of several values is asked for one of them.

Source: inspect_ai 0.3, scorer/_metric.py (value_to_float).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from rollbook.inputs.logged import LogError
from rollbook.records.json_values import JsonObject

_WORDS: Final = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_LETTERS: Final = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_PREFIX: Final = "score/"
_LISTED: Final = 12


def number_of(value: object) -> float | None:
    """Return what a score's value is worth, None where it is no number."""
    if isinstance(value, str):
        known = _LETTERS.get(value, _WORDS.get(value.lower()))
        return known if known is not None else _finite(value)
    return _finite(value) if isinstance(value, int | float) else None


def _finite(value: str | float) -> float | None:
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


@dataclass(slots=True)
class Scorer:
    """Whose score is the reward: `name` as it was asked for (a scorer, or scorer/value), None for the only one."""

    path: str
    name: str | None
    seen: set[str] = field(default_factory=set)

    def reward(self, scores: Mapping[str, object]) -> float | None:
        """Return the reward of a sample with `scores`, None where the scorer gave it none.

        Raises:
            LogError: there are several to choose from and none was asked for.

        """
        values = dict(_values(scores))
        self.seen.update(values)
        return number_of(values.get(self._chosen(values))) if values else None

    def answer(self, scores: Mapping[str, object]) -> str | None:
        """Return the answer that the rewarding scorer took from the sample, if it says one."""
        chosen = self._chosen(dict(_values(scores))) if scores else ""
        score = scores.get(chosen, scores.get(chosen.rpartition("/")[0]))
        answer = score.get("answer") if isinstance(score, Mapping) else None
        return answer if isinstance(answer, str) else None

    def check(self) -> None:
        """Refuse a scorer that judged nothing although others did.

        Raises:
            LogError: names those who did.

        """
        if self.name is not None and self.seen and self.name not in self.seen:
            raise LogError(f"{self.path}: no sample has a score of {self.name}; there are {_listed(self.seen)}")

    def _chosen(self, values: Mapping[str, object]) -> str:
        if self.name is not None:
            return self.name
        if len(values) > 1:
            raise LogError(
                f"{self.path}: several scorers judged it ({_listed(values)}); say with --scorer which one rewards"
            )
        return next(iter(values), "")


def fields(scores: Mapping[str, object]) -> JsonObject:
    """Return every score that is a number as a field `score/<scorer>` or `score/<scorer>/<value>`."""
    numbers = {name: number_of(value) for name, value in _values(scores)}
    return {f"{_PREFIX}{name}": number for name, number in numbers.items() if number is not None}


def _values(scores: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for name, score in scores.items():
        value = score.get("value") if isinstance(score, Mapping) else score
        if isinstance(value, Mapping):
            yield from ((f"{name}/{part}", held) for part, held in value.items())
        else:
            yield name, value


def _listed(names: Mapping[str, object] | set[str]) -> str:
    shown = sorted(names)
    return ", ".join(shown[:_LISTED]) + (f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else "")

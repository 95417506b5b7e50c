"""What the rows of a data set amount to: how many, how long, and what their fields hold.

Rules:
* Rows are seen once and none is kept: spread is summed as Welford does, different texts by `DistinctTexts`.
* A list counts as its members; an object, null and what routes a row count as nothing. A field that holds texts is told
  by its texts.
* Numbers are rounded to two places, below 1 to three; one that no float holds is null. The spread is that of a sample.

Source: servers.md §8.9. B. P. Welford, Note on a method for calculating corrected sums of squares and products,
Technometrics 4 (1962).
"""

import json
import math
from collections.abc import Mapping
from typing import Final

import msgspec

from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import AGENT_REF_KEY, RESPONSES_CREATE_PARAMS_KEY, SKILLS_REF_KEY, TASK_SOURCE_KEY
from rollbook.records.source import is_materialized
from rollbook.verbs.distinct_texts import DistinctTexts

COUNT: Final = "Number of examples"
TOOLS: Final = "Number of tools"
WORDS: Final = "Json-dumped number of words (proxy for token count)"
TURNS: Final = "Number of turns"
TEMPERATURE: Final = "Temperature"
_NO_FIELDS: Final = frozenset({RESPONSES_CREATE_PARAMS_KEY, AGENT_REF_KEY, TASK_SOURCE_KEY, SKILLS_REF_KEY})
_MOST_FIELDS: Final = 1000
_MOST: Final = 10**300


class Distribution(msgspec.Struct):
    """A sum over numbers that keeps none of them."""

    count: int = 0
    total: float = 0
    low: float = math.inf
    high: float = -math.inf
    _mean: float = 0.0
    _squares: float = 0.0

    def add(self, number: float, times: int = 1) -> None:
        """Take in a number that was seen so often."""
        self.count += times
        self.total += number * times
        self.low, self.high = min(self.low, number), max(self.high, number)
        away = number - self._mean
        self._mean += away * times / self.count
        self._squares += times * away * (number - self._mean)

    def told(self) -> JsonObject:
        """Return the metrics file's words for it."""
        none = self.count == 0
        spread = math.sqrt(self._squares / (self.count - 1)) if self.count > 1 else 0.0
        return {
            "Total # non-null values": self.count,
            "Average": 0.0 if none else _rounded(self.total / self.count),
            "Min": 0.0 if none else _rounded(self.low),
            "Max": 0.0 if none else _rounded(self.high),
            "Standard deviation": _rounded(spread),
        }


class DatasetMetrics:
    """Sums over the rows of a data set, of which each stands for so many as it is repeated."""

    def __init__(self) -> None:
        self.rows = 0
        self._params = {name: Distribution() for name in (TOOLS, WORDS, TURNS, TEMPERATURE)}
        self._seen: dict[str, None] = {}
        self._numbers: dict[str, Distribution] = {}
        self._texts: dict[str, int] = {}
        self._distinct = DistinctTexts()
        self.left_out = 0

    def add(self, row: JsonMapping, computed: JsonMapping | None = None, times: int = 1) -> None:
        """Take in a row, and what its server computed of its task; that stands for a field of the same name."""
        task = row["task_input"] if is_materialized(row) else row
        self.rows += times
        if not isinstance(task, dict):
            return
        self._add_params(task.get(RESPONSES_CREATE_PARAMS_KEY), times)
        for name, value in ({**task, **computed} if computed else task).items():
            if name not in _NO_FIELDS and not name.startswith("_ng_"):
                self._add_field(name, value, times)

    def told(self) -> JsonObject:
        """Return the metrics as the metrics file holds them."""
        told: JsonObject = {COUNT: self.rows}
        told |= {name: one.told() for name, one in self._params.items()}
        return told | {name: self._field(name) for name in self._seen if name not in told}

    def close(self) -> None:
        """Let go of what was put aside on disk."""
        self._distinct.close()

    def _add_params(self, params: object, times: int) -> None:
        if not isinstance(params, dict):
            return
        words = len(json.dumps(params).split())
        told = (_tools(params), words, _turns(params.get("input")), params.get("temperature"))
        for one, value in zip(self._params.values(), told, strict=True):
            number = _number(value)
            if number is not None:
                one.add(number, times)

    def _field(self, name: str) -> JsonObject:
        if name in self._texts:
            return {"unique_count": self._distinct.count(name), "total_count": self._texts[name]}
        return self._numbers[name].told()

    def _add_field(self, name: str, value: object, times: int) -> None:
        if isinstance(value, list):
            for part in value:
                self._add_value(name, part, times)
        else:
            self._add_value(name, value, times)

    def _add_value(self, name: str, value: object, times: int) -> None:
        if isinstance(value, str):
            if self._is_followed(name):
                self._texts[name] = self._texts.get(name, 0) + times
                self._distinct.add(name, value)
            return
        number = _number(value)
        if number is not None and self._is_followed(name):
            if name not in self._numbers:
                self._numbers[name] = Distribution()
            self._numbers[name].add(number, times)

    def _is_followed(self, name: str) -> bool:
        if name in self._seen:
            return True
        if len(self._seen) >= _MOST_FIELDS:
            self.left_out += 1
            return False
        self._seen[name] = None
        return True


def _tools(params: Mapping[str, object]) -> int | None:
    tools = params.get("tools")
    return len(tools) if isinstance(tools, list) else None


def _turns(given: object) -> int | None:
    """Return how often the user speaks; None where nobody asks anything yet."""
    if isinstance(given, str):
        return 1
    if not isinstance(given, list):
        return None
    turns = sum(1 for item in given if isinstance(item, dict) and item.get("role") == "user")
    return turns or None


def _number(value: object) -> float | None:
    """Return a number that can be summed; None of anything else."""
    if isinstance(value, int):
        return float(value) if abs(value) < _MOST else None
    return value if isinstance(value, float) and math.isfinite(value) else None


def _rounded(number: float) -> float | None:
    """Return a number as it is told; None where it grew beyond what JSON can hold."""
    if not math.isfinite(number):
        return None
    return round(float(number), 3 if abs(number) < 1 else 2)

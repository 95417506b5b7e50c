"""What a failure that a reply reports says of its reasons, as it is kept.

Rules:
* What looks like a credential is masked, and so is a text whose name says that it is one. Every other value keeps its
  type: an object stays an object, a number a number.
* Bounded: of each reason `REASON_KEPT` characters and values from its beginning, whatever it is; an ellipsis says that
  there was more.

Source: collection.md §1.3, §21.1 (10).
"""

from collections.abc import Mapping
from typing import Final

from rollbook.outcomes.credentials import MASK, names_credential
from rollbook.outcomes.error_text import MORE, beginning
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import FAILURE_REASON_KEY, NG_FAILURE_JUDGE_ERROR_KEY, NG_FAILURE_MESSAGE_KEY

REASON_KEPT: Final = 20_000
_MOST_LEVELS: Final = 64
_REASONS: Final = (
    NG_FAILURE_MESSAGE_KEY,
    NG_FAILURE_JUDGE_ERROR_KEY,
    FAILURE_REASON_KEY,
    "error_message",
    "error",
)
"""Where a failure that a reply reports says why."""


def masked_reasons(payload: JsonMapping) -> JsonObject:
    """Return a reported failure's own fields, of which those that say why hold no credential."""
    return dict(payload) | {key: _Beginning().of(payload[key]) for key in _REASONS if key in payload}


class _Beginning:
    """The beginning of one JSON value, without credentials."""

    def __init__(self) -> None:
        self._left = REASON_KEPT

    def of(self, value: object, level: int = 0) -> object:
        """Return what is kept of `value`."""
        self._left -= 1
        if isinstance(value, str):
            return self._text(value, self._left // 2 if level else self._left)
        if not isinstance(value, Mapping | list) or not value:
            return value
        if level == _MOST_LEVELS:
            return MORE
        return self._object(value, level + 1) if isinstance(value, Mapping) else self._array(value, level + 1)

    def _text(self, text: str, most: int) -> str:
        """Return what is kept of `text`; within an object or an array it leaves room for what stands beside it."""
        kept = beginning(text, max(most, 0))
        self._left -= len(kept)
        return kept

    def _object(self, value: JsonMapping, level: int) -> JsonObject:
        kept: JsonObject = {}
        for key, part in value.items():
            if self._left <= 0:
                return kept | {MORE: MORE}
            name = self._text(key, self._left // 2)
            hidden = part and isinstance(part, str) and names_credential(key)
            kept[name] = MASK if hidden else self.of(part, level)
        return kept

    def _array(self, value: list[object], level: int) -> list[object]:
        kept: list[object] = []
        for part in value:
            if self._left <= 0:
                return [*kept, MORE]
            kept.append(self.of(part, level))
        return kept

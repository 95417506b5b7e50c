"""How many repeats a row has, and whether they are seeded: one value for all, or one per routing key.

Rules:
* Keys match the dispatched agent first, then the row's own name, then `_default`.
* A key that no row used is a likely typo and is reported; a row that no key fits is an error.

Source: collection.md §2.5, §2.6.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

import msgspec

from rollbook.errors import InputError
from rollbook.plan.options import DEFAULT_KEY
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import RESPONSES_CREATE_PARAMS_KEY
from rollbook.records.nesting import not_too_deep

Value = TypeVar("Value", int, bool)


class PerKey(msgspec.Struct, Generic[Value]):
    """A setting that may differ by routing key; remembers which keys were used and which names found none."""

    setting: Value | Mapping[str, Value]
    _used: set[str] = msgspec.field(default_factory=set)
    _missed: dict[str, None] = msgspec.field(default_factory=dict)

    def find(self, target: str | None, basis: str | None) -> Value | None:
        """Return the value for a row, or None when no key fits."""
        if not isinstance(self.setting, Mapping):
            return self.setting
        for name in (target, basis, DEFAULT_KEY):
            if name is not None and name in self.setting:
                self._used.add(name)
                return self.setting[name]
        self._missed[" / ".join(name for name in (target, basis) if name)] = None
        return None

    def refuse_missed(self, option: str) -> None:
        """Raise for every routing key that the setting does not list."""
        if self._missed and isinstance(self.setting, Mapping):
            raise InputError(
                f"{option} has no entry for {', '.join(self._missed)}; it lists {', '.join(sorted(self.setting))}. "
                f"Add the entry, or {DEFAULT_KEY}"
            )

    @property
    def unused(self) -> tuple[str, ...]:
        """Listed keys that no row used."""
        if not isinstance(self.setting, Mapping):
            return ()
        return tuple(sorted(set(self.setting) - self._used - {DEFAULT_KEY}))


def seeded(row: JsonMapping, seed: int) -> JsonObject:
    """Return a copy of `row` with `seed` in the JSON string `responses_create_params.metadata.extra_body`.

    The string is spaced as other collectors space it, so that a plan of theirs and ours are equal byte for byte.

    Raises:
        InputError: the string is there and holds no JSON object.

    """
    block = row.get(RESPONSES_CREATE_PARAMS_KEY)
    params: JsonObject = dict(block) if isinstance(block, Mapping) else {}
    metadata = _metadata(params.get("metadata"))
    extra_body = _extra_body(metadata.get("extra_body"))
    metadata["extra_body"] = msgspec.json.format(msgspec.json.encode(extra_body | {"seed": seed}), indent=0).decode()
    params["metadata"] = metadata
    return dict(row) | {RESPONSES_CREATE_PARAMS_KEY: params}


def _metadata(own: object) -> JsonObject:
    if own is not None and not isinstance(own, Mapping):
        raise InputError(f"`responses_create_params.metadata` must be an object, found {own!r:.80}")
    return dict(own or {})


def _extra_body(text: object) -> JsonObject:
    told = "responses_create_params.metadata.extra_body must be a JSON object in a string"
    if text is None or text == "":
        return {}
    if not isinstance(text, str):
        raise InputError(f"{told}, found {text!r:.80}")
    try:
        return msgspec.json.decode(not_too_deep(text.encode()), type=dict[str, object])
    except msgspec.DecodeError as error:
        raise InputError(f"{told}: {error}") from None

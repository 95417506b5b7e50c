"""How the rows of one server look, learned as they come, so that of a row only its numbers are decoded.

Rules:
* A row that does not look as those before it is read key by key, and learned from: what is read of a row is the same
  either way.
* Numbers are those of `rows.PlacedRow`: of the usage first, then of the row, where the row's own win.

Source: collection.md §6.4 (3).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from operator import attrgetter
from typing import Annotated, Any, Final

import msgspec

from rollbook.errors import InputError
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME, is_index
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import BULKY_KEYS, MASK_SAMPLE_KEY, RESPONSE_KEY
from rollbook.scoring.number_column import EXACT
from rollbook.scoring.performance import PERF_KEY
from rollbook.scoring.rows import Number, number_in
from rollbook.scoring.struct_types import is_plain

USAGE: Final = "usage"
_MOST_KEYS: Final = 500
_MOST_LESSONS: Final = 64
_HEAD: Final = frozenset({TASK_INDEX_KEY_NAME, ROLLOUT_INDEX_KEY_NAME, MASK_SAMPLE_KEY, PERF_KEY, RESPONSE_KEY})
"""Keys that every row may have."""
_NOT_SHOWN: Final = frozenset({TASK_INDEX_KEY_NAME, ROLLOUT_INDEX_KEY_NAME, MASK_SAMPLE_KEY})
_KEPT_OF_RESPONSE: Final = (USAGE, "incomplete_details")
_NULL: Final = msgspec.Raw(b"null")
_NO_NUMBERS: Final = BULKY_KEYS | {MASK_SAMPLE_KEY}
_TOP: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_SCALAR: Final = msgspec.json.Decoder(int | float | bool)
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError)

Text = bytes | bytearray | memoryview
Names = tuple[str, ...]
Flat = tuple[Any, ...]
"""A row: task, rollout, whether it is masked (by truth), its `ng_perf`, and its numbers; None for what it has not."""
HEAD: Final = 4


class _Opaque(msgspec.Struct, gc=False):
    """An object into which nobody looks."""


_Whole = Annotated[int, msgspec.Meta(ge=-EXACT, le=EXACT)]
_Index = Annotated[int, msgspec.Meta(ge=0)]
_NUMBER, _FLAG, _TEXT, _OBJECT, _ARRAY, _NOTHING = range(6)
_TYPES: Final = {
    _NUMBER: _Whole | float,
    _FLAG: bool,
    _TEXT: str,
    _OBJECT: _Opaque,
    _ARRAY: list[msgspec.Raw],
    _NOTHING: type(None),
}
_KIND_OF: Final = {
    **dict.fromkeys(b"-0123456789", _NUMBER),
    **dict.fromkeys(b"tf", _FLAG),
    ord('"'): _TEXT,
    ord("{"): _OBJECT,
    ord("["): _ARRAY,
    ord("n"): _NOTHING,
}
_Fields = dict[str, msgspec.Raw]
_Kinds = dict[str, set[int]]


class RowShape:
    """Reads rows. `names` are the names of the numbers of those that were read; they become more, never fewer.

    `changes`: how often it changed how it reads.
    """

    def __init__(self) -> None:
        self.names: Names = ()
        self.changes = 0
        self._keys: _Kinds = {}
        self._usage: _Kinds = {}
        self._lessons = _MOST_LESSONS
        self._sample: Callable[[Text], msgspec.Raw] = sample_of
        self._read = _reader(self._keys, self._usage)

    def read_all(self, texts: Sequence[Text]) -> list[Flat]:
        """Read rows; their numbers are those of `names`, which may be others than before.

        Raises:
            InputError: one names no rollout.
            msgspec.DecodeError, UnicodeDecodeError: one is no JSON object.

        """
        rows: list[Flat] = []
        while len(rows) < len(texts):
            if self._read is not None:
                with suppress(msgspec.DecodeError, AttributeError):
                    rows.extend(self._read(texts[len(rows) :] if rows else texts))
            if len(rows) < len(texts):
                before = self.names
                row = self._read_by_key(texts[len(rows)])
                if self.names is not before:
                    rows = [relaid(one, before, self.names) for one in rows]
                rows.append(row)
        return rows

    def sample(self, text: Text) -> msgspec.Raw:
        """Return what an entry shows of a row that was read: without its bulk, its indices and the masking flag."""
        return self._sample(text)

    def _read_by_key(self, text: Text) -> Flat:
        fields = _TOP.decode(text)
        response = _object_in(fields.get(RESPONSE_KEY))
        usage = _object_in(response.get(USAGE))
        task, rollout = _index(fields, TASK_INDEX_KEY_NAME), _index(fields, ROLLOUT_INDEX_KEY_NAME)
        numbers = _numbers(usage) | _numbers({name: raw for name, raw in fields.items() if name not in _NO_NUMBERS})
        if self._lessons and _noted(fields, self._keys) | _noted(usage, self._usage):
            self._learn()
        if not numbers.keys() <= set(self.names):
            self.names = tuple(dict.fromkeys((*self.names, *numbers)))
            self._stop_learning()
            self._read = None
            self.changes += 1
        head = (task, rollout, bool(_value(fields, MASK_SAMPLE_KEY)), _value(fields, PERF_KEY))
        return head + tuple(map(numbers.get, self.names))

    def _learn(self) -> None:
        self.changes += 1
        self._lessons -= 1
        every = (*self._keys, *self._usage)
        if len(every) > _MOST_KEYS or not all(map(is_plain, every)) or not self._lessons:
            self._stop_learning()
            return
        self.names = tuple({**_numeric(self._usage), **_numeric(self._keys)})
        self._read = _reader(self._keys, self._usage)
        self._sample = _sampler(self._keys) if self._read else sample_of

    def _stop_learning(self) -> None:
        """Read on as before; what a row shows is looked for in all of it, as it may have keys that were not learned."""
        self._lessons = 0
        self._sample = sample_of


def relaid(row: Flat, before: Names, now: Names) -> Flat:
    """Return a row whose numbers are those of `before` as one whose numbers are those of `now`."""
    numbers = dict(zip(before, row[HEAD:], strict=True))
    return row[:HEAD] + tuple(map(numbers.get, now))


def _reader(keys: _Kinds, usage: _Kinds) -> Callable[[Iterable[Text]], Iterable[Flat]] | None:
    """Return what reads rows of these keys, one by one; None where a name stands for two numbers."""
    counted, used = _numeric(keys), _numeric(usage)
    if counted.keys() & used.keys():
        return None
    decode = msgspec.json.Decoder(_row_type(keys, usage)).decode
    paths = [f"response.usage.{attribute}" for attribute in used.values()]
    get = attrgetter("task", "rollout", "masked", "perf", *paths, *counted.values())
    if all(kinds <= {_NUMBER, _NOTHING} for kinds in (*_kinds_of(usage, used), *_kinds_of(keys, counted))):
        return lambda texts: map(get, map(decode, texts))

    def read_mixed(texts: Iterable[Text]) -> Iterable[Flat]:
        rows = map(get, map(decode, texts))
        return (row[:HEAD] + tuple(map(number_in, row[HEAD:])) for row in rows)

    return read_mixed


def _kinds_of(kinds: _Kinds, names: Mapping[str, str]) -> list[set[int]]:
    return [kinds[name] for name in names]


def _sampler(keys: _Kinds) -> Callable[[Text], msgspec.Raw]:
    """Return what makes samples of rows of these keys."""
    shown = [name for name in (*keys, PERF_KEY) if name not in BULKY_KEYS]
    fields: list[tuple[str, Any, Any]] = [
        (f"_{number}", msgspec.Raw, _lacking(name)) for number, name in enumerate(shown)
    ]
    kept = msgspec.defstruct(
        "_Kept", [(name, msgspec.Raw, None) for name in _KEPT_OF_RESPONSE], gc=False, omit_defaults=True
    )
    fields.append(("response", kept | None, None))
    row_type: Any = msgspec.defstruct("_Shown", fields, gc=False, omit_defaults=True)
    decode = msgspec.json.Decoder(row_type).decode
    nothing = kept()

    def sample(text: Text) -> msgspec.Raw:
        try:
            row = decode(text)
        except msgspec.DecodeError:
            return sample_of(text)
        response = row.response
        if response is not None:
            for name in _KEPT_OF_RESPONSE:
                if getattr(response, name) == _NULL:
                    setattr(response, name, None)
            if response == nothing:
                row.response = None
        return msgspec.Raw(msgspec.json.encode(row))

    return sample


def sample_of(text: Text) -> msgspec.Raw:
    """Return what an entry shows of a row."""
    light = light_fields(_TOP.decode(text))
    return msgspec.Raw(msgspec.json.encode({key: light[key] for key in light if key not in _NOT_SHOWN}))


def light_fields(row: Mapping[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    """Return a row's fields without its bulk; of the response only usage and the reason of an early end stay."""
    light = {key: value for key, value in row.items() if key not in BULKY_KEYS}
    told = {
        key: value
        for key, value in _object_in(row.get(RESPONSE_KEY)).items()
        if key in _KEPT_OF_RESPONSE and value != _NULL
    }
    if told:
        light[RESPONSE_KEY] = msgspec.Raw(msgspec.json.encode(told))
    return light


def _row_type(keys: _Kinds, usage: _Kinds) -> type[msgspec.Struct]:
    """Return the type of rows with these keys and no others."""
    used = [(attribute, _type_of(usage[name]), _lacking(name)) for name, attribute in _attributes(usage).items()]
    usage_type = msgspec.defstruct("_Usage", used, forbid_unknown_fields=True, gc=False)
    usage_field: Any = usage_type if usage else None
    lacking = msgspec.field(default_factory=usage_type) if usage else None
    response = msgspec.defstruct("_Response", [(USAGE, usage_field, lacking)], gc=False)
    attributes = _attributes(keys)
    fields = [
        ("task", _Index, msgspec.field(name=TASK_INDEX_KEY_NAME)),
        ("rollout", _Index, msgspec.field(name=ROLLOUT_INDEX_KEY_NAME)),
        ("masked", Any, msgspec.field(name=MASK_SAMPLE_KEY, default=None)),
        ("perf", JsonObject | None, msgspec.field(name=PERF_KEY, default=None)),
        ("response", response, msgspec.field(default_factory=response)),
        *((attributes[name], _type_of(kinds), _lacking(name)) for name, kinds in keys.items()),
    ]
    return msgspec.defstruct("_Row", fields, forbid_unknown_fields=True, gc=False)


def _type_of(kinds: set[int]) -> Any:
    if not kinds:
        return msgspec.Raw
    wanted: Any = None
    for kind in sorted(kinds):
        wanted = wanted | _TYPES[kind] if wanted is not None else _TYPES[kind] | None
    return wanted


def _lacking(name: str) -> Any:
    return msgspec.field(name=name, default=None)


def _attributes(kinds: Mapping[str, object]) -> dict[str, str]:
    return {name: f"_{number}" for number, name in enumerate(kinds)}


def _numeric(kinds: _Kinds) -> dict[str, str]:
    """Return the attributes of the keys that were numbers at least once."""
    attributes = _attributes(kinds)
    return {name: attributes[name] for name, seen in kinds.items() if seen & {_NUMBER, _FLAG}}


def _noted(fields: _Fields, kinds: _Kinds) -> bool:
    """Note the kinds of values that `fields` have; return whether one was not known."""
    news = False
    for name, raw in fields.items():
        if name in _HEAD:
            continue
        if name.startswith("_") or name in BULKY_KEYS:
            news |= name not in kinds
            kinds.setdefault(name, set())
            continue
        seen, kind = kinds.setdefault(name, set()), _KIND_OF[memoryview(raw)[0]]
        news |= kind not in seen
        seen.add(kind)
    return news


def _numbers(fields: _Fields) -> dict[str, Number]:
    return {
        name: number
        for name, raw in fields.items()
        if not name.startswith("_") and (number := _number(raw)) is not None
    }


def _number(raw: msgspec.Raw) -> Number | None:
    if _KIND_OF[memoryview(raw)[0]] not in {_NUMBER, _FLAG}:
        return None
    try:
        return number_in(_SCALAR.decode(raw))
    except _UNREADABLE:
        return None


def _object_in(raw: msgspec.Raw | None) -> _Fields:
    return _TOP.decode(raw) if raw is not None and _KIND_OF[memoryview(raw)[0]] == _OBJECT else {}


def _value(fields: _Fields, name: str) -> object:
    return msgspec.json.decode(fields[name]) if name in fields else None


def _index(fields: _Fields, name: str) -> int:
    value = _value(fields, name)
    if isinstance(value, int) and is_index(value):
        return value
    raise InputError(f"a row names no rollout ({name}: {value!r}); it is a non-negative integer in a collected row")

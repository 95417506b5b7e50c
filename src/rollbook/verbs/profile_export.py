"""A planned row → the source row that it was made of, to be run again.

Rules:
* What a run adds goes: who the rollout is, where it was routed, which skills it had, and the seed of its repeat.
* What a run changed for good stays: a prompt that was filled in, and parameters that it set for all rows.

Source: collection.md §2.4 to §2.7, §2.10.
"""

from typing import Final

import msgspec

from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.records.keys import RESPONSES_CREATE_PARAMS_KEY, SKILLS_REF_KEY
from rollbook.records.nesting import not_too_deep
from rollbook.records.task_content import without_seed

Row = dict[str, msgspec.Raw]

_RESERVED: Final = "_ng_"
_ROW: Final = msgspec.json.Decoder(Row)
_INDICES: Final = frozenset((TASK_INDEX_KEY_NAME, ROLLOUT_INDEX_KEY_NAME))
_METADATA: Final = "metadata"
_EXTRA_BODY: Final = "extra_body"


def planned_row(line: bytes) -> Row:
    """Return the values of a line of a plan, by their keys.

    Raises:
        msgspec.DecodeError: the line is no JSON object.

    """
    return _ROW.decode(not_too_deep(line))


def source_row(line: bytes, row: Row) -> bytes:
    """Return the row that a run can be given again, compact, of a `line` of its plan, which holds `row`."""
    kept = {key: value for key, value in row.items() if not key.startswith(_RESERVED) and key != SKILLS_REF_KEY}
    if b'\\"seed\\"' in line and RESPONSES_CREATE_PARAMS_KEY in kept:
        repeat = msgspec.json.decode(row.get(ROLLOUT_INDEX_KEY_NAME, msgspec.Raw(b"null")))
        params = _without_seed(msgspec.json.decode(kept[RESPONSES_CREATE_PARAMS_KEY]), repeat)
        kept[RESPONSES_CREATE_PARAMS_KEY] = msgspec.Raw(msgspec.json.encode(params))
    return msgspec.json.encode(kept)


def sample_of(row: Row) -> msgspec.Raw:
    """Return what a profile shows of a task: its planned row without its indices."""
    shown = {key: value for key, value in row.items() if key not in _INDICES}
    return msgspec.Raw(msgspec.json.encode(shown))


def _without_seed(params: object, repeat: object) -> object:
    """Return request parameters without the seed that a run gave this repeat: its own number."""
    if not isinstance(params, dict):
        return params
    left, seed = without_seed(params)
    if seed is None or seed != repeat:
        return params
    metadata = left.get(_METADATA)
    if isinstance(metadata, dict) and _EXTRA_BODY in metadata:
        left[_METADATA] = metadata | {_EXTRA_BODY: msgspec.json.encode(metadata[_EXTRA_BODY]).decode()}
    return left

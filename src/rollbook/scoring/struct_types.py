"""Types that are made while a program runs, of the keys that its data turns out to have.

Rules:
* Keys of any text are taken; only those that a type cannot have cost a mapping instead.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

_MOST: Final = 3000
_ODD: Final = frozenset('"\\')
_FIRST_PRINTED: Final = " "


def is_plain(key: str) -> bool:
    """Whether a type's field may be written as `key`."""
    return not any(sign in _ODD or sign < _FIRST_PRINTED for sign in key)


def maker(keys: Sequence[str]) -> Callable[..., object]:
    """Return what makes of values, one for each of `keys`, an object for JSON; None among them has no place in it.

    Of keys that are there twice the later value holds.
    """
    if len(keys) > _MOST or len(set(keys)) < len(keys) or not all(map(is_plain, keys)):
        return lambda *values: {key: value for key, value in zip(keys, values, strict=True) if value is not None}
    fields = [(f"_{number}", Any, msgspec.field(name=key, default=None)) for number, key in enumerate(keys)]
    return msgspec.defstruct("_Made", fields, omit_defaults=True, gc=False)

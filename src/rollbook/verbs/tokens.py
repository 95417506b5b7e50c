"""How many tokens the results that are on disk say they used.

Rules:
* Every saved result counts, whatever stands of its rollout: what was used was used.
* What is no number of tokens is left out.

Source: case RC-27.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import UNREADABLE, scan

_COUNTED: Final = ("input_tokens", "output_tokens", "total_tokens")


class _Response(msgspec.Struct):
    usage: Any = None


class _Row(msgspec.Struct):
    response: _Response | None = None


_ROW: Final = msgspec.json.Decoder(_Row)


def tokens_of(paths: RunPaths, size: int | None = None) -> Mapping[str, int] | None:
    """Return the sums over the results at `paths` (over their first `size` bytes), or None when none names any."""
    sums: Counter[str] = Counter()
    for line in scan(paths.output, size):
        try:
            response = _ROW.decode(line.text).response
        except UNREADABLE:
            continue
        usage = response.usage if response is not None else None
        if isinstance(usage, dict):
            sums.update({name: usage[name] for name in _COUNTED if type(usage.get(name)) is int})
    return dict(sums) or None

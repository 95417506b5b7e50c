"""Whether any result of a run shows that a model was used at all.

Rules:
* The first result that shows it ends the search: of a run that is in order, one line is read.
* An empty output shows no use where the usage is stated and zero, or where nothing is said of usage and no reward was
  earned. A result without a response says nothing, and counts as used: not every agent has a model.

Source: case RC-72.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from rollbook.ledger.projection import BOM
from rollbook.ledger.reader import whole_lines
from rollbook.records.reading import UNREADABLE, reward_of

NO_MODEL_USED: Final = (
    "no rollout used the model: every result has an empty output and no token usage. The scores are those of a run "
    "whose model was never called; look at the agent's and the model server's logs"
)


class _Result(msgspec.Struct, gc=False):
    reward: Any = None
    response: Any = None


_RESULT: Final = msgspec.json.Decoder(_Result)


def no_result_used_the_model(results: Path) -> bool:
    """Whether there are results, and none of them shows that a model was used."""
    found = False
    for _, _, _, text in whole_lines(results):
        try:
            row = _RESULT.decode(text.removeprefix(BOM))
        except UNREADABLE:
            continue
        if _used(row):
            return False
        found = True
    return found


def _used(row: _Result) -> bool:
    response = row.response
    if not isinstance(response, Mapping) or response.get("output"):
        return True
    usage = response.get("usage")
    if isinstance(usage, Mapping) and usage:
        return any(isinstance(count, int | float) and count > 0 for count in usage.values())
    return (reward_of(row.reward) or 0.0) > 0

"""The results of a run, as a caller is handed them: of each rollout the one that stands.

Rules:
* The fold decides: a result that a later attempt took the place of is history, and in no list beside its successor.
* A line that cannot be read is no result; whoever went on with such a run was told of it.
"""

from typing import Any, Final

import msgspec

from rollbook.ledger.history import read_history
from rollbook.ledger.paths import RunPaths
from rollbook.records.place import File
from rollbook.verbs.placed_rows import PlacedRows

_RESULT: Final = msgspec.json.Decoder(dict[str, Any])


def saved_results(paths: RunPaths) -> list[dict[str, Any]]:
    """Return the results of a run that stand, in (task, rollout) order."""
    standings = read_history(paths, on_damage=lambda _error: None).standings
    places = (place for _, place in standings.places(standings.in_order()) if place.file is File.RESULTS)
    with PlacedRows(paths.output) as rows:
        return [_RESULT.decode(rows.at(place.offset, place.length)) for place in places]

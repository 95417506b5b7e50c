"""How much the metrics of single repeats differ from one repeat to the next.

Rules:
* Only point estimates are compared across repeats: no spread of a spread, no mean of a count.
* A metric that fewer than two repeats have is not compared.

Source: collection.md §6.4 (7).
"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

from rollbook.records.json_values import JsonObject
from rollbook.scoring.columns import defined
from rollbook.scoring.pass_at_k import COMPANIONS
from rollbook.scoring.repeats import interval
from rollbook.scoring.rows import Number, number_in
from rollbook.scoring.spread import mean, median, sample_std

_COUNTS: Final = frozenset({"sample_count", "missing_count", "num_repeats", "token_usage_version"})
_OTHER_STATISTICS: Final = (
    *("_ng_", "median/", "std/", "sem/", "min/", "max/"),
    *("p5/", "p25/", "p75/", "p95/", "ci_low_95/", "ci_high_95/"),
)
_OTHER_ENDINGS: Final = ("/max", "/min", "/median", "/p5", "/p25", "/p75", "/p95", *COMPANIONS)
_BOUND: Final = re.compile(r"/ci_[^/]*$|_ci\d*_(?:lower|upper)$")


def is_primary(name: str) -> bool:
    """Whether a repeat metric is a point estimate, so that its spread across repeats means something."""
    return not (
        name in _COUNTS or name.startswith(_OTHER_STATISTICS) or name.endswith(_OTHER_ENDINGS) or _BOUND.search(name)
    )


def across_repeats(entries: Sequence[Mapping[str, object]]) -> JsonObject:
    """Return `<statistic>_across_repeats/<metric>` for every point estimate that two or more repeats have."""
    metrics: JsonObject = {}
    for name in dict.fromkeys(name for entry in entries for name in entry if is_primary(name)):
        values = [number for entry in entries if (number := number_in(entry.get(name))) is not None]
        if len(values) > 1:
            statistics = _statistics(sorted(values))
            metrics |= defined({f"{key}_across_repeats/{name}": value for key, value in statistics.items()})
    return metrics


def _statistics(ordered: Sequence[Number]) -> dict[str, Number | None]:
    center, std = mean(ordered), sample_std(ordered)
    error = None if std is None else std / math.sqrt(len(ordered))
    low = high = None
    if center is not None and error is not None:
        low, high = interval(center, error, len(ordered))
    return {
        "mean": center,
        "median": median(ordered),
        "std": std,
        "min": ordered[0],
        "max": ordered[-1],
        "se": error,
        "ci_low_95": low,
        "ci_high_95": high,
    }

"""Five statistics of every numeric field of some rows.

Rules:
* A field that a row does not have is skipped there, never taken as zero.
* Where no field has two values, every spread is undefined; fields without gaps then show 0, others show none.

Source: collection.md §6.4 (3 to 5).
"""

from collections.abc import Mapping, Sequence

from rollbook.records.json_values import JsonObject
from rollbook.scoring.distribution import Distribution
from rollbook.scoring.rows import Number, PlacedRow


def columns_of(rows: Sequence[PlacedRow]) -> dict[str, list[Number]]:
    """Return the values of each numeric field, in the order of the rows."""
    columns: dict[str, list[Number]] = {}
    for row in rows:
        for name, number in row.numbers.items():
            columns.setdefault(name, []).append(number)
    return columns


def described(rows: Sequence[PlacedRow]) -> JsonObject:
    """Return `mean/`, `max/`, `min/`, `median/` and `std/` of every numeric field of `rows`."""
    return described_columns({name: Distribution(values) for name, values in columns_of(rows).items()}, len(rows))


def described_columns(columns: Mapping[str, Distribution], rows: int) -> JsonObject:
    """Return the same of the numeric fields of so many rows, each of which some of them have."""
    spreads = _spreads(columns, rows)
    statistics: JsonObject = {}
    for name, values in columns.items():
        statistics |= defined(
            {
                f"mean/{name}": values.mean(),
                f"max/{name}": values.highest,
                f"min/{name}": values.lowest,
                f"median/{name}": values.median(),
                f"std/{name}": spreads[name],
            }
        )
    return statistics


def defined(statistics: Mapping[str, Number | None]) -> JsonObject:
    """Return the statistics that are defined."""
    return {name: value for name, value in statistics.items() if value is not None}


def _spreads(columns: Mapping[str, Distribution], rows: int) -> Mapping[str, float | None]:
    spreads = {name: values.sample_std() for name, values in columns.items()}
    if any(spread is not None for spread in spreads.values()):
        return spreads
    return {name: 0.0 if values.count == rows else None for name, values in columns.items()}

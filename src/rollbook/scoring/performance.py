"""What rollouts cost: the summary of `ng_perf`, over all rows, masked ones included.

Rules:
* Nothing is summarised when no row carries `ng_perf`; a value that a row does not have is skipped, never zero.

Source: collection.md §6.4 (11), §8.5; servers.md §8.11.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from rollbook.records.json_values import JsonObject
from rollbook.scoring.columns import defined
from rollbook.scoring.number_column import NumberColumn
from rollbook.scoring.rows import Number, number_in
from rollbook.scoring.spread import mean, median, population_std, quantile
from rollbook.scoring.streamed_part import PartColumn

PERF_KEY: Final = "ng_perf"
_TOKENS: Final = ("prompt_tokens", "cached_prompt_tokens", "completion_tokens", "reasoning_tokens")
_TURNS: Final = "num_turns"
_LATENCY: Final = "total_latency_ms"
_COVERAGE: Final = "token_observability_coverage"
_RATE: Final = "tokens_per_turn"
_STATED: Final = (*_TOKENS, _TURNS, _LATENCY, _COVERAGE)
_READ: Final = (*_STATED, _RATE)
_AT_ONCE: Final = 1024


class PerfColumns:
    """What many rows' `ng_perf` says, as columns; `found` of the `rows` have it."""

    def __init__(self) -> None:
        self.rows = 0
        self.found = 0
        self._columns: dict[str, list[Number]] = {name: [] for name in _READ}
        self._full = {name: NumberColumn() for name in _READ}

    def add(self, perf: object) -> None:
        """Take one row in, whose `ng_perf` is `perf`."""
        self.rows += 1
        if isinstance(perf, Mapping):
            self.found += 1
            self._keep(perf)
            if self.found % _AT_ONCE == 0:
                self._flush()

    def _keep(self, perf: Mapping[str, Any]) -> None:
        columns = self._columns
        for name in _STATED:
            number = number_in(perf.get(name))
            if number is not None:
                columns[name].append(number)
        rate = _rate(perf)
        if rate is not None:
            columns[_RATE].append(rate)

    def _flush(self) -> None:
        for name, values in self._columns.items():
            self._full[name].extend(values)
            values.clear()

    def parts(self) -> Iterator[PartColumn]:
        """Yield the columns for `take`; how many rows there are is told by `rows` and `found`."""
        self._flush()
        return (PartColumn.of(None, name, column) for name, column in self._full.items())

    def take(self, part: PartColumn) -> None:
        """Take in a column of other rows."""
        self._full[part.name].extend(part.numbers())

    def summary(self) -> JsonObject | None:
        """Return the summary, or None when no row carried `ng_perf`. Latencies are milliseconds."""
        if not self.found:
            return None
        self._flush()
        seen_tokens = sum(share > 0 for share in self._full[_COVERAGE])
        return {
            "overall_observability_coverage": self.found / self.rows,
            _COVERAGE: seen_tokens / self.rows,
            **self._tokens(),
            **_turns(sorted(self._full[_TURNS])),
            **_tokens_per_turn(sorted(self._full[_RATE])),
            **_latency(sorted(self._full[_LATENCY])),
        }

    def _tokens(self) -> JsonObject:
        summary: JsonObject = {}
        for name in _TOKENS:
            values = sorted(self._full[name])
            if values:
                summary |= defined({f"mean_{name}": mean(values), f"median_{name}": median(values)})
                summary[f"total_{name}"] = sum(values)
        return summary


def perf_summary(rows: Iterable[Mapping[str, Any]]) -> JsonObject | None:
    """Return the summary of `rows`, or None when no row carries `ng_perf`. Latencies are milliseconds."""
    columns = PerfColumns()
    for row in rows:
        columns.add(row.get(PERF_KEY))
    return columns.summary()


def _turns(values: Sequence[Number]) -> JsonObject:
    if not values:
        return {}
    return defined(
        {
            f"mean_{_TURNS}": mean(values),
            f"median_{_TURNS}": median(values),
            f"std_{_TURNS}": population_std(values),
            f"min_{_TURNS}": values[0],
            f"p90_{_TURNS}": quantile(values, 0.9),
            f"max_{_TURNS}": values[-1],
        }
    )


def _tokens_per_turn(rates: Sequence[Number]) -> JsonObject:
    return defined({"mean_tokens_per_turn": mean(rates), "median_tokens_per_turn": median(rates)})


def _rate(perf: Mapping[str, Any]) -> float | None:
    turns, tokens = number_in(perf.get(_TURNS)), number_in(perf.get("completion_tokens"))
    return tokens / turns if turns and tokens is not None else None


def _latency(values: Sequence[Number]) -> JsonObject:
    return defined(
        {
            "total_latency_p50_ms": quantile(values, 0.5),
            "total_latency_p90_ms": quantile(values, 0.9),
            "total_latency_p99_ms": quantile(values, 0.99),
            "total_latency_mean_ms": mean(values),
        }
    )

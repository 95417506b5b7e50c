"""What rollouts cost: the summary of `ng_perf`, over all rows, masked ones included.

Rules:
* Nothing is summarised when no row carries `ng_perf`; a value that a row does not have is skipped, never zero.

Source: collection.md §6.4 (11), §8.5; servers.md §8.11.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from rollbook.records.json_values import JsonObject
from rollbook.scoring.columns import defined
from rollbook.scoring.rows import Number, number_in
from rollbook.scoring.spread import mean, median, population_std, quantile

PERF_KEY: Final = "ng_perf"
_TOKENS: Final = ("prompt_tokens", "cached_prompt_tokens", "completion_tokens", "reasoning_tokens")
_TURNS: Final = "num_turns"
_LATENCY: Final = "total_latency_ms"
_COVERAGE: Final = "token_observability_coverage"


def perf_summary(rows: Sequence[Mapping[str, Any]]) -> JsonObject | None:
    """Return the summary of `rows`, or None when no row carries `ng_perf`. Latencies are milliseconds."""
    perfs = [perf for row in rows if isinstance(perf := row.get(PERF_KEY), Mapping)]
    if not perfs:
        return None
    seen_tokens = [share for share in _values(perfs, _COVERAGE) if share > 0]
    return {
        "overall_observability_coverage": len(perfs) / len(rows),
        _COVERAGE: len(seen_tokens) / len(rows),
        **_tokens(perfs),
        **_turns(_values(perfs, _TURNS)),
        **_tokens_per_turn(perfs),
        **_latency(_values(perfs, _LATENCY)),
    }


def _values(perfs: Sequence[Mapping[str, Any]], name: str) -> list[Number]:
    return sorted(number for perf in perfs if (number := number_in(perf.get(name))) is not None)


def _tokens(perfs: Sequence[Mapping[str, Any]]) -> JsonObject:
    summary: JsonObject = {}
    for name in _TOKENS:
        values = _values(perfs, name)
        if values:
            summary |= defined({f"mean_{name}": mean(values), f"median_{name}": median(values)})
            summary[f"total_{name}"] = sum(values)
    return summary


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


def _tokens_per_turn(perfs: Sequence[Mapping[str, Any]]) -> JsonObject:
    rates = sorted(rate for perf in perfs if (rate := _rate(perf)) is not None)
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

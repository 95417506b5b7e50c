"""What is made of the results of one server, in plain values.

Rules:
* The model that travels between servers has the same fields; who reads results from files does without it.

Source: collection.md §6.4; servers.md §8.11.
"""

import msgspec

from rollbook.records.json_values import JsonMapping, JsonObject


class Metrics(msgspec.Struct):
    """Metrics overall, those that stand for all, and per repeat; entries of tasks went where they were asked for."""

    agent_metrics: JsonObject
    key_metrics: JsonObject
    perf_summary: JsonObject | None = None
    repeat_level_metrics: list[JsonObject] = msgspec.field(default_factory=list)


def default_key_metrics(agent_metrics: JsonMapping) -> JsonObject:
    """Return the metrics that stand for a server when it names none itself: every `mean/*`."""
    return {name: value for name, value in agent_metrics.items() if name.startswith("mean/")}

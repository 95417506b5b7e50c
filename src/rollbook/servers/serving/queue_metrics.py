"""What a model server's metrics say of its queue: how many requests wait, and how many run.

Rules:
* The names of vLLM, SGLang and llama.cpp are known; their values are summed over all label sets.
* Comments are passed over, and so is a value that counts nothing: NaN, infinite, negative, no number.
* Text in which no such value stands says nothing, which is not the same as an empty queue.

Source: collection.md §7.4; the Prometheus text format, version 0.0.4.
"""

import math
from collections.abc import Iterator
from typing import Final

Queues = tuple[float, float]
"""Requests that wait and requests that run."""

WAITING: Final = frozenset({"vllm:num_requests_waiting", "sglang:num_queue_reqs", "llamacpp:requests_deferred"})
RUNNING: Final = frozenset({"vllm:num_requests_running", "sglang:num_running_reqs", "llamacpp:requests_processing"})
_METRICS: Final = "/metrics"
_API: Final = "/v1"


def metrics_url(url: str) -> str:
    """Return where the server behind `url` tells its metrics; its root, its API (`/v1`) or the page itself will do."""
    root = url.rstrip("/")
    return root if root.endswith(_METRICS) else root.removesuffix(_API) + _METRICS


def queues_of(text: str) -> Queues | None:
    """Return what `text`, in the Prometheus text format, says of the queue; None where it says nothing."""
    waiting: list[float] = []
    running: list[float] = []
    for name, value in _values(text):
        (waiting if name in WAITING else running).append(value)
    return (math.fsum(waiting), math.fsum(running)) if waiting or running else None


def _values(text: str) -> Iterator[tuple[str, float]]:
    for line in text.splitlines():
        name, rest = _parts(line.strip())
        if name in WAITING or name in RUNNING:
            value = _counted(rest)
            if value is not None:
                yield name, value


def _parts(line: str) -> tuple[str, str]:
    """Split a line into its name and what follows the labels. A label's text may hold blanks and braces."""
    name, brace, rest = line.partition("{")
    if brace and not name.strip().count(" "):
        return name.strip(), rest.rpartition("}")[2]
    name, _, rest = line.replace("\t", " ").partition(" ")
    return name, rest


def _counted(rest: str) -> float | None:
    try:
        value = float(rest.split(maxsplit=1)[0])
    except (ValueError, IndexError):
        return None
    return value if math.isfinite(value) and value >= 0 else None

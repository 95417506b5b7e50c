"""Asking the model servers for their queues, again and again.

Rules:
* A sample sums over the servers that answered. One that did not is left out of that sample, and named once.
* Where no server answered there is no sample.
* It goes on until it is cancelled, and leaves no connection behind.
* The HTTP client is loaded with the first sample: a run that names no servers does without it.

Source: collection.md §7.4.
"""

import asyncio
import logging
import math
from collections.abc import Callable, Sequence
from typing import Final

from rollbook.clock import Clock
from rollbook.servers.http.redaction import redacted_url
from rollbook.servers.serving.queue_metrics import Queues, metrics_url, queues_of

_LOG = logging.getLogger(__name__)
SECONDS: Final = 5.0
"""How long one server has to answer."""


async def sample_queues(
    urls: Sequence[str], interval: float, clock: Clock, on_sample: Callable[[Queues], None], *, seconds: float = SECONDS
) -> None:
    """Hand `on_sample` what waits and what runs at all of `urls`, now and after every `interval` seconds."""
    named: set[str] = set()
    while True:
        answers = await asyncio.gather(*(_ask(url, seconds, named) for url in urls))
        queues = [answer for answer in answers if answer is not None]
        if queues:
            on_sample((math.fsum(waiting for waiting, _ in queues), math.fsum(running for _, running in queues)))
        await clock.sleep(interval)


async def _ask(url: str, seconds: float, named: set[str]) -> Queues | None:
    from rollbook.servers.serving.metrics_page import fetch_page  # noqa: PLC0415  loads the HTTP client, see the rules

    page = await fetch_page(metrics_url(url), seconds)
    queues = None if page.missing else queues_of(page.text)
    if queues is None and url not in named:
        named.add(url)
        why = page.missing or "its metrics hold no queue of vLLM, SGLang or llama.cpp"
        _LOG.warning("the model server %s tells nothing of its queue: %s", redacted_url(url), why)
    return queues

"""The sends of one attempt, where a caller lets a request that may have been lost be sent again.

Rules:
* Each is listed with what is known of its delivery; of the attempt, the most that any of them gives away is known.

Source: collection.md §3.6, §3.7.
"""

from dataclasses import dataclass, field
from typing import Final

from rollbook.records.exchange import Exchange, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.records.json_values import JsonObject

NG_FAILURE_SENDS_KEY: Final = "_ng_failure_sends"
"""The key of a failure row that lists the sends of its attempt, where there were several."""
_SURER: Final = (Delivery.NOT_SENT, Delivery.POSSIBLY_DELIVERED, Delivery.DELIVERED)


@dataclass(slots=True)
class Sends:
    """The sends of one attempt: each with how far it came, and, except for one that brought a reply, how it failed."""

    exchanges: list[Exchange] = field(default_factory=list)
    failures: list[SendFailed] = field(default_factory=list)

    @property
    def delivery(self) -> Delivery:
        """What is known of the attempt, as far as its sends brought no reply."""
        told = [failure.delivery for failure in self.failures]
        told += [exchange.delivery for exchange in self.exchanges[len(self.failures) :]]
        return max(told, key=_SURER.index, default=Delivery.NOT_SENT)

    def fields(self) -> JsonObject:
        """Return what a failure says of its sends; nothing where there was one, of which the failure says it all."""
        if len(self.exchanges) <= 1:
            return {}
        listed: list[JsonObject] = [
            {"delivery": one.delivery.value, "exception_type": one.exception_type, "message": one.message}
            for one in self.failures
        ]
        listed += [{"delivery": one.delivery.value} for one in self.exchanges[len(self.failures) :]]
        return {NG_FAILURE_SENDS_KEY: listed}

"""Chance without dice: a number that follows from what it is drawn for.

Rules:
* The same labels give the same number, on every machine and in every process.
* Draws for different labels are independent, so that their order does not matter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final, TypeVar

Value = TypeVar("Value")
_BITS: Final = 53


def digest_of(*labels: object) -> str:
    """Return 32 hexadecimal digits that follow from the labels' text."""
    state = blake2b(digest_size=16)
    for label in labels:
        text = str(label).encode("utf-8", "surrogatepass")
        state.update(len(text).to_bytes(8, "big") + text)
    return state.hexdigest()


@dataclass(frozen=True, slots=True)
class Chance:
    """Draws that all follow from one root, told apart by their own labels."""

    root: str

    def share(self, *labels: object) -> float:
        """Return a number in [0, 1), uniform over labels."""
        return (int(digest_of(self.root, *labels), 16) >> (128 - _BITS)) / (1 << _BITS)

    def one_of(self, values: Sequence[Value], *labels: object) -> Value:
        """Return one of `values`, which must hold some, each as likely as any other."""
        return values[int(self.share(*labels) * len(values))]

    def weighted(self, weights: Mapping[Value, float], *labels: object) -> Value:
        """Return one of the keys, as likely as its share of the weights, whose sum must be above zero."""
        left = self.share(*labels) * sum(weights.values())
        chosen = next(iter(weights))
        for value, weight in weights.items():
            if weight <= 0:
                continue
            chosen = value
            left -= weight
            if left < 0:
                break
        return chosen

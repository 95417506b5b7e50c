"""What a check saw, and what the findings of a record add up to.

Rules:
* A check names what it found and where; that a finding makes a record unhealthy is said in `reduction`.

Source: collection.md §7.1, §7.3.
"""

from collections.abc import Mapping
from enum import Enum

import msgspec

Detail = Mapping[str, object]


class Verdict(Enum):
    """What is said of a record."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    UNOBSERVED = "unobserved"


class Scope(Enum):
    """What a check is run on."""

    RECORD = "record"
    TASK = "task"
    DUPLICATES = "duplicates"
    EXECUTION = "execution"


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong: by which check, where in the record (`locator`, if not all of it), and details."""

    check: str
    locator: Detail = msgspec.field(default_factory=dict)
    detail: Detail = msgspec.field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return it as it is written; an empty locator is left out."""
        where = {"locator": dict(self.locator)} if self.locator else {}
        return {"check": self.check, **where, "detail": dict(self.detail)}


class Found(msgspec.Struct, frozen=True):
    """What one check found where, without the check's name."""

    locator: Detail = msgspec.field(default_factory=dict)
    detail: Detail = msgspec.field(default_factory=dict)

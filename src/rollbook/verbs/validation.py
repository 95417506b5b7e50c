"""What a validation found: checks, each with its findings, or the reason why it could not be made.

Rules:
* A finding says where, what, and what to do; an error fails a validation, a warning fails a strict one.
* What was not checked is said, and fails a strict validation: silence would read as a pass.

Source: servers.md §8.12, §10.2.
"""

import re
from collections.abc import Iterable
from typing import Final, Literal

import msgspec

from rollbook.records.json_values import JsonObject

Level = Literal["error", "warning"]
Status = Literal["ok", "failed", "warned", "not checked"]
_PLACED: Final = re.compile(r"(?P<place>(?:[A-Za-z]:)?[^:\s]\S*?(?::\d+)?): (?P<words>.*)", re.DOTALL)


class Finding(msgspec.Struct, frozen=True):
    """One thing that is wrong: `place` is a file, with its line where one is known."""

    place: str
    message: str
    level: Level = "error"

    def __str__(self) -> str:
        """Say it in a line."""
        return f"{self.place}: {self.message}" if self.place else self.message


class Check(msgspec.Struct, frozen=True):
    """One check: what it found, and what it looked at; `unchecked` says why it, or a part of it, was not made."""

    name: str
    findings: tuple[Finding, ...] = ()
    looked_at: str = ""
    unchecked: str = ""

    @property
    def status(self) -> Status:
        """What it came to."""
        levels = {finding.level for finding in self.findings}
        if "error" in levels:
            return "failed"
        if "warning" in levels:
            return "warned"
        return "not checked" if self.unchecked and not self.looked_at else "ok"


class Validation(msgspec.Struct, frozen=True):
    """What came of the checks of one environment."""

    name: str
    manifest: str
    checks: tuple[Check, ...]
    synced: bool = False

    def is_valid(self, *, strict: bool = False) -> bool:
        """Whether nothing is wrong; `strict` takes warnings and what was not checked for wrong."""
        statuses = {check.status for check in self.checks}
        unchecked = any(check.unchecked for check in self.checks)
        return "failed" not in statuses and not (strict and ("warned" in statuses or unchecked))

    def as_json(self, *, strict: bool) -> JsonObject:
        """Return it as a report holds it."""
        return {
            "name": self.name,
            "manifest": self.manifest,
            "valid": self.is_valid(strict=strict),
            "strict": strict,
            "synced": self.synced,
            "checks": [_as_json(check) for check in self.checks],
        }


def _as_json(check: Check) -> JsonObject:
    return {
        "name": check.name,
        "status": check.status,
        "looked_at": check.looked_at,
        "unchecked": check.unchecked or None,
        "findings": [msgspec.to_builtins(finding) for finding in check.findings],
    }


def findings_in(text: str, place: str = "", level: Level = "error") -> tuple[Finding, ...]:
    """Return the lines of an error as findings; a line that begins with a file and a number brings its own place."""
    return tuple(_finding(line, place, level) for line in text.splitlines() if line.strip())


def _finding(line: str, place: str, level: Level) -> Finding:
    found = _PLACED.fullmatch(line)
    is_file = found is not None and ("/" in found["place"] or re.search(r":\d+$", found["place"]))
    if found is not None and is_file:
        return Finding(found["place"], found["words"], level)
    return Finding(place, line, level)


def several(findings: Iterable[Finding], most: int = 20) -> tuple[Finding, ...]:
    """Return findings, cut off where there are too many to be read."""
    told = tuple(findings)
    if len(told) <= most:
        return told
    return (*told[:most], Finding("", f"and {len(told) - most} more", told[most].level))

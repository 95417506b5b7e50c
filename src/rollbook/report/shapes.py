"""What looks the same in every document that a command prints: its version, counts of coverage, and files.

Rules:
* Keys are snake_case, and one thing has one shape, whichever command tells of it.
* Where a document had other keys for a count first, those stay, and stand beside these.

Source: collection.md §1.12; docs/cli.md, "What JSON looks like".
"""

from collections.abc import Mapping
from os import PathLike, fspath
from typing import Final

from msgspec.structs import asdict

from rollbook.records.coverage import Coverage
from rollbook.records.json_values import JsonObject
from rollbook.scoring.coverage_report import counts

VERSION: Final[JsonObject] = {"schema_version": 1}


def files_json(files: Mapping[str, str | PathLike[str]]) -> JsonObject:
    """Return paths by what they are."""
    return {name.replace(" ", "_"): fspath(path) for name, path in files.items()}


def coverage_json(coverage: Coverage) -> JsonObject:
    """Return how many rollouts stand where, as the coverage report says it; what counts as zero is not known here."""
    return {name: count for name, count in counts(coverage).items() if name != "imputed"}


def both_coverages(coverage: Coverage) -> JsonObject:
    """Return the same where `failed` was a number first: failures by class stand under `failed_by_class` alone."""
    return coverage_json(coverage) | asdict(coverage)

"""What a listing says of an entry of the catalog beside its folder: its manifest, and how an agent is composed.

Rules:
* A manifest that cannot be read is a status of its entry, and its error a note; the others are listed all the same.
* A filter by what a manifest says leaves out what has none.

Source: servers.md §10.2, §8.12.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from rollbook.config.catalog import CatalogEntry, Shelf
from rollbook.config.files import plain, read_yaml
from rollbook.config.manifest import MANIFEST_FILE, EnvironmentManifest, manifest_of, read_manifest
from rollbook.config.names import AGENTS, MISSING
from rollbook.config.tree import blocks, mapping_at
from rollbook.errors import ConfigError
from rollbook.records.json_values import JsonObject

EXPERIMENTAL: Final = "experimental"
NO_MANIFEST: Final = "no-manifest"
BROKEN_MANIFEST: Final = "broken-manifest"
_OF_A_MANIFEST: Final = ("domain", "version", "integration_profile", "modality", "licensing", "lifecycle")


class Listed(msgspec.Struct, frozen=True):
    """An environment or a benchmark of the catalog with its manifest; `problem` says why that cannot be read."""

    entry: CatalogEntry
    manifest: EnvironmentManifest | None = None
    problem: str = ""

    @property
    def status(self) -> str | None:
        """What is to be known before it is relied on; None where nothing is."""
        if self.problem:
            return BROKEN_MANIFEST
        if self.manifest is None:
            return NO_MANIFEST
        return EXPERIMENTAL if self.manifest.experimental else None

    def told(self, field: str) -> str | None:
        """Return what the manifest says in one field; None where there is no manifest."""
        return None if self.manifest is None else str(getattr(self.manifest, field))

    def as_json(self) -> JsonObject:
        """Return what a listing says beside name, kind and description."""
        status: JsonObject = {} if self.status is None else {"status": self.status}
        return {**status, **{field: self.told(field) for field in _OF_A_MANIFEST}}

    def passes(self, wanted: Mapping[str, str | None]) -> bool:
        """Whether it is what each filter says: by name `status`, or the name of a field of a manifest."""
        return all(self._is(field, value) for field, value in wanted.items() if value is not None)

    def _is(self, field: str, value: str) -> bool:
        told = self.status if field == "status" else self.told(field)
        parts = (told or "").casefold().split(",") if field == "modality" else [(told or "").casefold()]
        return value.casefold() in {(told or "").casefold(), *(part.strip() for part in parts)}


def listed(entry: CatalogEntry) -> Listed:
    """Return an entry with its manifest."""
    try:
        read = entry.manifest
        return Listed(entry, read_manifest(entry.path / MANIFEST_FILE) if read is None else manifest_of(read))
    except FileNotFoundError:
        return Listed(entry)
    except ConfigError as error:
        return Listed(entry, problem=str(error))


def is_self_contained(entry: CatalogEntry) -> bool:
    """Whether an agent brings what it needs: no configuration of it leaves a resources server to be bound.

    An agent without a configuration is bound by others' and counts as composable.
    """
    told = list(_resources_of_agents(entry))
    return bool(told) and MISSING not in told


def pattern_of(entry: CatalogEntry) -> str:
    """Return how an agent comes to its resources server, as a listing says it."""
    return "B (self-contained)" if is_self_contained(entry) else "A (composable)"


def _resources_of_agents(entry: CatalogEntry) -> Iterator[object]:
    """Yield the resources servers that an agent's configurations name; None for an agent that has none."""
    assert entry.shelf is Shelf.AGENT  # noqa: S101  no other shelf holds agents
    for file in sorted((entry.path / "configs").glob("*.yaml")):
        try:
            tree = plain(read_yaml(file))
        except ConfigError:
            continue
        for _, kind, block in blocks(tree, AGENTS):
            if kind == entry.path.name:
                yield (mapping_at(block, "resources_server") or {}).get("name")

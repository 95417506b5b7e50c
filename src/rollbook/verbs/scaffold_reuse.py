"""What a new environment takes from the one whose verifier it has: between which ends rewards lie, and the licence.

Rules:
* What was said stays as it was said; what was not is as the verifier's own environment has it, where there is one.
"""

from msgspec.structs import replace

from rollbook.config.catalog import Shelf
from rollbook.config.manifest import MANIFEST_FILE, EnvironmentManifest, read_manifest
from rollbook.config.roots import search_roots
from rollbook.errors import ConfigError
from rollbook.verbs.scaffold import Wanted


def as_reused(wanted: Wanted, reward_range: tuple[float, float] | None, *, higher_is_better: bool | None) -> Wanted:
    """Return what is wanted with the ends that were said, else those of the verifier's own environment."""
    own = None if wanted.reuse is None else _own_manifest(wanted.reuse)
    low, high = reward_range or (own.reward.range if own is not None else (wanted.low, wanted.high))
    better = own.reward.higher_is_better if higher_is_better is None and own is not None else higher_is_better
    licensing = wanted.licensing if own is None else own.licensing
    return replace(wanted, low=low, high=high, higher_is_better=better is not False, licensing=licensing)


def _own_manifest(verifier: str) -> EnvironmentManifest | None:
    """Return the manifest of the environment that bears a verifier's name and has it."""
    for root in search_roots() if verifier.isidentifier() else ():
        try:
            manifest = read_manifest(root / Shelf.ENVIRONMENT / verifier / MANIFEST_FILE)
        except (FileNotFoundError, NotADirectoryError, ConfigError):
            continue
        if manifest.resources_server == verifier:
            return manifest
    return None

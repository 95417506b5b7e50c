"""An environment checked as it lies there, without servers: configuration, manifest, rows, licence, answers.

Rules:
* A check that another one makes pointless is not made, and says so.
* Nothing is written but a manifest that is to be synced.

Source: servers.md §8.12, §10.2.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
from omegaconf import DictConfig

from rollbook.config.catalog import Shelf, shelf_entries
from rollbook.config.composed import Composed, composed_by, parsed_without_model
from rollbook.config.instances import server_instances
from rollbook.config.manifest import MANIFEST_FILE, EnvironmentManifest, Kind, manifest_of
from rollbook.config.names import DUMMY_MODEL
from rollbook.config.placed_yaml import PlacedYaml, read_placed_yaml
from rollbook.config.roots import search_roots
from rollbook.config.tree import did_you_mean
from rollbook.errors import ConfigError, ConfigPathNotFoundError
from rollbook.verbs.data_card import licences_of
from rollbook.verbs.manifest_mirror import differences, mirrored_fields, replace_text, synced_text, to_be_written
from rollbook.verbs.validate_answers import answers_checked
from rollbook.verbs.validate_rows import rows_checked, rows_to_ask
from rollbook.verbs.validation import Check, Finding, Validation, findings_in
from rollbook.verbs.verifier_check import verifier_of

_SHELVES: Final[dict[Kind, Shelf]] = {"environment": Shelf.ENVIRONMENT, "benchmark": Shelf.BENCHMARK}
_USAGE_EXIT_CODE: Final = 2
_CARD: Final = Path("data") / "README.md"
_SKIPPED: Final = "the manifest and its configuration have to be mended first"


class _Environment(msgspec.Struct, frozen=True):
    """What was read of an environment."""

    name: str
    read: PlacedYaml
    manifest: EnvironmentManifest
    cfg: DictConfig
    composed: Composed


def manifest_path(name: str, kind: Kind | None = None) -> Path:
    """Return the manifest of an environment or a benchmark, under the first root that has it.

    Raises:
        ConfigPathNotFoundError: no root holds the name (exit code 2).

    """
    shelves = [_SHELVES[kind]] if kind else [*_SHELVES.values()]
    for shelf in shelves if all(part not in {"", ".", ".."} for part in name.split("/")) else ():
        for root in search_roots():
            if (root / shelf / name).is_dir():
                return root / shelf / name / MANIFEST_FILE
    known = sorted({entry.name for shelf in shelves for entry in shelf_entries(shelf)})
    places = " or ".join(f"{shelf}/{name}" for shelf in shelves)
    searched = ", ".join(map(str, search_roots()))
    error = ConfigPathNotFoundError(f"there is no {places} (searched in: {searched}).{did_you_mean(name, known)}")
    error.exit_code = _USAGE_EXIT_CODE
    raise error


async def validated(path: Path, name: str, *, sync: bool = False) -> Validation:
    """Return what the checks of the environment with the manifest at `path` found; `sync` mends the manifest first."""
    try:
        synced = sync and _synced(path)
        read = read_placed_yaml(path, "a manifest")
        manifest = manifest_of(read)
    except FileNotFoundError:
        told = Finding(str(path), "there is no such file; gym env init writes one, docs/making.md says what it holds")
        return _broken(name, path, Check("manifest", (told,)))
    except ConfigError as error:
        return _broken(name, path, Check("manifest", findings_in(str(error), str(path))))
    config = (path.parent / manifest.config_path).resolve()
    try:
        cfg = parsed_without_model(config)
        composed = composed_by(cfg, manifest.dataset_owner)
    except ConfigError as error:
        return _broken(name, path, Check("config", findings_in(str(error), str(config))), synced=synced)
    environment = _Environment(name, read, manifest, cfg, composed)
    checks = (
        _config_check(cfg, config),
        _manifest_check(environment),
        rows_checked(cfg, composed.dataset_owner, name),
        _licence_check(environment),
        await _answers_check(environment),
    )
    return Validation(name, str(path), checks, synced)


def _broken(name: str, path: Path, check: Check, *, synced: bool = False) -> Validation:
    others = [Check(other, unchecked=_SKIPPED) for other in ("rows", "licence", "answers")]
    return Validation(name, str(path), (check, *others), synced)


def _synced(path: Path) -> bool:
    """Write a manifest's composition anew, and return whether that changed it."""
    read = read_placed_yaml(path, "a manifest")
    owner = read.tree.get("dataset_owner")
    config = (path.parent / str(read.tree.get("config_path", "config.yaml"))).resolve()
    composed = composed_by(parsed_without_model(config), str(owner) if owner is not None else None)
    driven = read.tree.get("integration_profile") == "external-rollout-driver"
    wrong = to_be_written(read, mirrored_fields(composed, with_owner=owner is not None, with_driver=driven))
    if wrong:
        replace_text(path, synced_text(read, wrong))
    return bool(wrong)


def _config_check(cfg: DictConfig, config: Path) -> Check:
    instances = [one for one in server_instances(cfg) if one.implementation != DUMMY_MODEL]
    absent = [
        Finding(
            str(config),
            f"`{one.name}`: no {one.server_type}/{one.implementation}/{one.entrypoint} under any search root; "
            "add its root with --search-dir, or mend the name",
        )
        for one in instances
        if not (one.dir_path / one.entrypoint).is_file()
    ]
    return Check("config", tuple(absent), f"{config}, {len(instances)} servers")


def _manifest_check(environment: _Environment) -> Check:
    found = [
        *_names(environment),
        *differences(environment.read, environment.manifest, environment.composed, environment.name),
    ]
    return Check("manifest", tuple(found), str(environment.read.path))


def _names(environment: _Environment) -> Iterator[Finding]:
    """Yield what the manifest says of itself otherwise than the folder that it lies in."""
    read, manifest, folder = environment.read, environment.manifest, environment.read.path.parent
    beside = manifest.config_path == "config.yaml"
    if beside and manifest.name not in {folder.name, environment.name}:
        yield Finding(
            read.at(("name",)), f"name is {manifest.name}, its folder is {folder.name}; write name: {folder.name}"
        )
    kinds = [kind for kind, shelf in _SHELVES.items() if shelf in {part.name for part in folder.parents}]
    if kinds and manifest.kind not in kinds:
        yield Finding(
            read.at(("kind",)), f"kind is {manifest.kind}, and it lies among {kinds[0]}s; write kind: {kinds[0]}"
        )


def _licence_check(environment: _Environment) -> Check:
    read, manifest = environment.read, environment.manifest
    found: list[Finding] = []
    if manifest.licensing == "unknown":
        words = "licensing is unknown; write an SPDX expression such as Apache-2.0, internal or proprietary"
        found.append(Finding(read.at(("licensing",)), words, "warning"))
    own = read.path.parent / _CARD
    card = own if own.is_file() else _card(environment.cfg, environment.composed.judge)
    if card is None or not card.is_file():
        where = card or read.path.parent
        return Check("licence", tuple(found), manifest.licensing, f"there is no data card {where}")
    said = licences_of(card)
    if not said:
        found.append(
            Finding(str(card), "the data card names no licence; write license: <id> in its front matter", "warning")
        )
    elif (manifest.kind == "environment" or card == own) and all(_disagree(one, manifest.licensing) for one in said):
        words = f"licensing is {manifest.licensing}, the data card {card} says {', '.join(said)}; make them agree"
        found.append(Finding(read.at(("licensing",)), words, "warning"))
    return Check("licence", tuple(found), f"{manifest.licensing}, {card}")


def _disagree(card: str, licensing: str) -> bool:
    """Whether two names stand for different licences; a card has no words for expressions and says `other`."""
    is_expression = " " in licensing or licensing in {"internal", "proprietary"}
    return card.casefold() != ("other" if is_expression else licensing.casefold())


def _card(cfg: DictConfig, judge: str | None) -> Path | None:
    folders = [one.dir_path for one in server_instances(cfg) if one.name == judge]
    return folders[0] / _CARD if folders else None


async def _answers_check(environment: _Environment) -> Check:
    if environment.manifest.resources_server is None:
        return Check("answers", unchecked="the manifest names no resources server that would judge")
    try:
        verifier = verifier_of(environment.manifest, environment.read.path, environment.name)
    except ConfigError as error:
        return Check("answers", findings_in(str(error), environment.read.at(("resources_server",))))
    return await answers_checked(verifier, rows_to_ask(environment.cfg, environment.composed.dataset_owner))

"""A manifest beside its configuration: what it repeats wrongly, and its file written anew with what is right.

Rules:
* The configuration is right: the manifest's composition repeats it.
* Other lines of the file stay as they are, comments among them; the file is replaced as a whole.

Source: servers.md §8.12.
"""

import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import yaml

from rollbook.config.composed import Composed
from rollbook.config.manifest import EnvironmentManifest
from rollbook.config.placed_yaml import PlacedYaml
from rollbook.errors import ConfigError
from rollbook.ledger.whole_file import made_aside
from rollbook.verbs.validation import Finding

_ALWAYS: Final = ("resources_server", "agent_server", "model_server", "datasets")
_END: Final = re.compile(r"\.\.\.(\s|$)")


def mirrored_fields(composed: Composed, *, with_owner: bool, with_driver: bool) -> dict[str, object]:
    """Return the fields of a manifest that repeat a configuration; None stands for a field that is to be left out."""
    told: dict[str, object] = {field: getattr(composed, field) for field in _ALWAYS}
    told["datasets"] = [dict(entry) for entry in composed.datasets]
    if with_owner:
        told["dataset_owner"] = composed.dataset_owner
    if with_driver:
        told["rollout_driver"] = composed.rollout_driver
    return told


def differences(read: PlacedYaml, manifest: EnvironmentManifest, composed: Composed, name: str) -> Iterator[Finding]:
    """Yield what a manifest repeats otherwise than its configuration composes it."""
    driven = manifest.integration_profile == "external-rollout-driver"
    right = mirrored_fields(composed, with_owner=manifest.dataset_owner is not None, with_driver=driven)
    said = manifest.model_dump(mode="json", exclude_none=True)
    for field, value in right.items():
        if not _is_same(said.get(field), value):
            yield Finding(read.at((field,)), f"{field} {_told(said.get(field), value)}: gym env validate {name} --sync")


def to_be_written(read: PlacedYaml, right: Mapping[str, object]) -> dict[str, object]:
    """Return those of the right fields that a manifest's file has otherwise, or lacks."""
    return {field: value for field, value in right.items() if not _is_same(read.tree.get(field), value)}


def _is_same(said: object, right: object) -> bool:
    if isinstance(said, list) and isinstance(right, list):
        return len(said) == len(right) and all(map(_is_same, said, right))
    if isinstance(said, dict) and isinstance(right, dict):
        return {"num_repeats": 1, **said} == {"num_repeats": 1, **right}
    return said == right


def _told(said: object, right: object) -> str:
    says = "is left out" if said is None else f"is {_short(said)}"
    composes = "nothing of it" if right is None else _short(right)
    return f"{says}; the configuration composes {composes}; write that, or run"


def _short(value: object) -> str:
    return (
        yaml.safe_dump(value, default_flow_style=True, width=10_000, allow_unicode=True).removesuffix("\n...\n").strip()
    )


def synced_text(read: PlacedYaml, fields: Mapping[str, object]) -> str:
    """Return the text of a manifest with `fields` in the place of its own.

    Raises:
        ConfigError: a file whose fields do not stand on lines of their own, or that cannot be changed line by line.

    """
    lines = read.path.read_bytes().decode("utf-8-sig").splitlines()
    end = next((index for index, line in enumerate(lines) if _END.match(line)), len(lines))
    lines, after = lines[:end], lines[end:]
    starts = sorted((line - 1, str(place[0])) for place, line in read.lines.items() if len(place) == 1)
    ends = [start for start, _ in starts[1:]] + [len(lines)]
    if len({start for start, _ in starts}) < len(starts):
        raise ConfigError(f"{read.path}: several fields stand on one line; give each a line of its own")
    kept = lines[: starts[0][0]] if starts else lines
    for (start, field), end in zip(starts, ends, strict=True):
        kept += _field(field, fields[field]) if field in fields else lines[start:end]
        kept += _comments_before_next(lines[start:end]) if field in fields else []
    for field, value in fields.items():
        kept += [] if field in read.tree else _field(field, value)
    text = "\n".join([*kept, *after]) + "\n"
    if _says(text) != {field: value for field, value in {**read.tree, **fields}.items() if value is not None}:
        told = _short({field: value for field, value in fields.items() if value is not None})
        raise ConfigError(f"{read.path} cannot be changed line by line; write into it yourself: {told}")
    return text


def _says(text: str) -> dict[str, object] | None:
    """Return what a text says in its fields; None where it is no manifest."""
    try:
        tree = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return None
    return {field: value for field, value in tree.items() if value is not None} if isinstance(tree, dict) else None


def _field(field: str, value: object) -> list[str]:
    if value is None:
        return []
    return yaml.safe_dump({field: value}, sort_keys=False, allow_unicode=True, width=110).splitlines()


def _comments_before_next(lines: list[str]) -> list[str]:
    """Return the comments and empty lines at the end of a field's lines: they speak of what follows."""
    count = 0
    while count < len(lines) and (not lines[-1 - count].strip() or lines[-1 - count].lstrip().startswith("#")):
        count += 1
    return lines[len(lines) - count :]


def replace_text(path: Path, text: str) -> None:
    """Put `text` in the place of a file, as a whole: of the one that a link leads to, with the mode that it has."""
    file = path.resolve()
    with made_aside(file) as making:
        making.file.write(text.encode())
        making.seal(stat.S_IMODE(file.stat().st_mode))
        making.place()

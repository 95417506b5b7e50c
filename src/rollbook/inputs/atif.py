"""A list of ATIF trajectories → which rollout each is an answer of, checked to be one-to-one.

Rules:
* JSON is strict: no key twice, no NaN, no infinity; a list's row has no key that is not known.
* One rollout, one file, one content, one trajectory: whatever comes twice is refused, and both rows are named.
* A digest that is pinned is checked. Nothing is guessed from a file's name.

Source: collection.md §9.1.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rollbook.errors import ConfigPathNotFoundError, InputError
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME, RolloutKey
from rollbook.records.json_values import JsonMapping, JsonObject, text_or_none

_VERSIONS: Final = "ATIF-v1."


class _Row(BaseModel):
    """One row of the list, as it is written."""

    model_config = ConfigDict(extra="forbid", strict=True)

    trajectory_path: str = Field(min_length=1)
    task: int = Field(alias=TASK_INDEX_KEY_NAME, ge=0)
    rollout: int = Field(alias=ROLLOUT_INDEX_KEY_NAME, ge=0)
    expected_sha256: str | None = Field(default=None, pattern=r"^[0-9a-fA-F]{64}$")


@dataclass(frozen=True, slots=True)
class ListedTrajectory:
    """A trajectory in its file, and the rollout whose answer it is. `line`: its row in the list, from 1."""

    key: RolloutKey
    path: Path
    sha256: str
    line: int
    schema_version: str
    session_id: str | None
    trajectory_id: str | None
    has_tool_calls: bool

    def read(self) -> JsonObject:
        """Return the trajectory.

        Raises:
            InputError: the file is another one than it was when it was listed.

        """
        content = self.path.read_bytes()
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise InputError(f"{self.path}: changed since it was read; run the command again")
        return _object(content, str(self.path))


def listed_trajectories(manifest: Path) -> list[ListedTrajectory]:
    """Return the trajectories that the list at `manifest` names; a path in it is seen from the list's folder.

    Raises:
        InputError: a row or a trajectory that is none, a digest that is not the pinned one, or one of them twice.
        ConfigPathNotFoundError: a trajectory that is not there.

    """
    found = [_trajectory(row, number, manifest) for number, row in _rows(manifest)]
    if not found:
        raise InputError(f"{manifest}: no trajectory is listed")
    named: tuple[tuple[str, list[str | None]], ...] = (
        ("rollout", [str(one.key) for one in found]),
        ("file", [str(one.path) for one in found]),
        ("content", [one.sha256 for one in found]),
        ("trajectory", [_identity(one) for one in found]),
    )
    for what, names in named:
        _refuse_twice(manifest, what, names, found)
    return found


def _refuse_twice(manifest: Path, what: str, names: list[str | None], found: list[ListedTrajectory]) -> None:
    first: dict[str, int] = {}
    for name, one in zip(names, found, strict=True):
        if name is not None and first.setdefault(name, one.line) != one.line:
            raise InputError(
                f"{manifest}:{one.line}: the {what} {name} is in line {first[name]} already; list each rollout, file, "
                "content and trajectory once"
            )


def _identity(one: ListedTrajectory) -> str | None:
    if one.session_id is None and one.trajectory_id is None:
        return None
    return f"{one.session_id or '-'}/{one.trajectory_id or '-'}"


def _rows(manifest: Path) -> Iterator[tuple[int, _Row]]:
    for number, line in enumerate(manifest.read_bytes().split(b"\n"), start=1):
        if line.strip():
            where = f"{manifest}:{number}"
            try:
                yield number, _Row.model_validate(_object(line, where))
            except ValidationError as error:
                fault = error.errors()[0]
                raise InputError(f"{where}: {'.'.join(map(str, fault['loc']))}: {fault['msg']}") from None


def _trajectory(row: _Row, number: int, manifest: Path) -> ListedTrajectory:
    path = (manifest.parent / row.trajectory_path).resolve()
    where = f"{manifest}:{number}"
    if not path.is_file():
        raise ConfigPathNotFoundError(f"{where}: {path}: no such trajectory")
    content = path.read_bytes()
    digest = hashlib.sha256(content).hexdigest()
    if row.expected_sha256 is not None and digest != row.expected_sha256.lower():
        raise InputError(f"{where}: {path}: its SHA-256 is {digest}, and not the pinned {row.expected_sha256}")
    trajectory = _object(content, str(path))
    return ListedTrajectory(
        RolloutKey(row.task, row.rollout),
        path,
        digest,
        number,
        _version(trajectory, path),
        text_or_none(trajectory.get("session_id")),
        text_or_none(trajectory.get("trajectory_id")),
        any(step.get("tool_calls") for step in steps_of(trajectory, str(path))),
    )


def _version(trajectory: JsonMapping, path: Path) -> str:
    version = trajectory.get("schema_version")
    if not isinstance(version, str) or not version.startswith(_VERSIONS):
        raise InputError(f"{path}: schema_version is {version!r}; trajectories of {_VERSIONS}x are read")
    return version


def steps_of(trajectory: JsonMapping, where: str) -> list[JsonObject]:
    """Return the steps of a trajectory.

    Raises:
        InputError: there are none, or one of them is no object.

    """
    steps = trajectory.get("steps")
    if not isinstance(steps, list) or not steps or not all(isinstance(step, dict) for step in steps):
        raise InputError(f"{where}: `steps` is no list of objects, or empty")
    return steps


def _object(text: bytes, where: str) -> JsonObject:
    """Return a strict JSON object."""

    def once(pairs: list[tuple[str, object]]) -> JsonObject:
        found: JsonObject = {}
        for name, value in pairs:
            if name in found:
                raise InputError(f"{where}: the key {name!r} is there twice")
            found[name] = value
        return found

    def refuse(name: str) -> object:
        raise InputError(f"{where}: {name} is no JSON")

    try:
        read = json.loads(text, object_pairs_hook=once, parse_constant=refuse)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{where}: not JSON: {error}") from None
    if not isinstance(read, dict):
        raise InputError(f"{where}: no JSON object")
    return read

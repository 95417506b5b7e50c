"""A batch manifest: what an outer scheduler says that one shared run holds, checked against what the run plans.

Rules:
* Versioned and closed: a key that is not known is refused, so that no value of any other kind travels along.
* It is named by the SHA-256 of its exact bytes.
* Whatever it says and the planned rows do not is told in one message, and nothing is sent; no message shows a value
  that was refused.

Source: collection.md §1.9.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rollbook.errors import ConfigError, ConfigPathNotFoundError

_CLOSED: Final = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)
_Name = Annotated[str, Field(min_length=1, max_length=200)]
_Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class BatchAgentRef(BaseModel):
    """Which agent runs a member's rows."""

    model_config = _CLOSED

    name: _Name


class BatchRepeatPolicy(BaseModel):
    """How often each task of a member is run. With `add_seed` a rollout's seed is its index."""

    model_config = _CLOSED

    num_repeats: int = Field(ge=1)
    add_seed: bool = False


class BatchMember(BaseModel):
    """One logical benchmark of the run."""

    model_config = _CLOSED

    agent_ref: BatchAgentRef
    tasks: int = Field(ge=1)
    dataset_fingerprint: _Sha256
    repeat_policy: BatchRepeatPolicy


class BatchManifest(BaseModel):
    """The hand-off from an outer scheduler to one shared run."""

    model_config = _CLOSED

    schema_version: Literal[1]
    members: Annotated[list[BatchMember], Field(min_length=1)]

    @model_validator(mode="after")
    def _each_agent_once(self) -> "BatchManifest":
        names = Counter(member.agent_ref.name for member in self.members)
        if twice := [name for name, count in names.items() if count > 1]:
            raise ValueError(f"several members have the agent {', '.join(twice)}; each agent is one member")
        return self


@dataclass(frozen=True, slots=True)
class LoadedBatchManifest:
    """A batch manifest with where it was read and the SHA-256 of its exact bytes."""

    path: Path
    sha256: str
    manifest: BatchManifest


@dataclass(frozen=True, slots=True)
class ObservedBatchMember:
    """What the planned rows of one agent show.

    `repeats` holds every number of rollouts that some task has; `seeds_follow_repeats`: every row's seed is its rollout
    index; `seeds_vary`: rows of one task differ in their seed.
    """

    agent: str
    tasks: int
    dataset_fingerprint: str
    repeats: tuple[int, ...]
    seeds_follow_repeats: bool
    seeds_vary: bool


def load_batch_manifest(path: Path) -> LoadedBatchManifest:
    """Read a batch manifest.

    Raises:
        ConfigPathNotFoundError: no such file.
        ConfigError: a file that holds no batch manifest of a version that is known.

    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ConfigPathNotFoundError(f"{path}: no such batch manifest (`batch_manifest_fpath`)") from None
    except OSError as error:
        raise ConfigError(f"{path}: the batch manifest cannot be read: {error.strerror}") from None
    try:
        manifest = BatchManifest.model_validate_json(content)
    except ValidationError as error:
        raise ConfigError("\n".join([f"{path} is no batch manifest:", *_faults(error)])) from None
    return LoadedBatchManifest(path, hashlib.sha256(content).hexdigest(), manifest)


def refuse_mismatch(loaded: LoadedBatchManifest, observed: Sequence[ObservedBatchMember]) -> None:
    """Compare what the manifest says with what is planned.

    Raises:
        ConfigError: they differ; names every difference.

    """
    seen = {member.agent: member for member in observed}
    told = {member.agent_ref.name: member for member in loaded.manifest.members}
    differences = list(_differences(told, seen))
    if differences:
        lines = [f"{loaded.path} does not describe the rows that are planned:", *differences]
        raise ConfigError("\n".join([*lines, "Mend the batch manifest, or the input and its repeats"]))


def _differences(told: Mapping[str, BatchMember], seen: Mapping[str, ObservedBatchMember]) -> Iterator[str]:
    for name, member in told.items():
        if name in seen:
            yield from (f"{name}: {difference}" for difference in _differences_of(member, seen[name]))
        else:
            yield f"{name}: a member without a planned row"
    yield from (f"{name}: rows are planned, and no member has this agent" for name in seen if name not in told)


def _differences_of(told: BatchMember, seen: ObservedBatchMember) -> Iterator[str]:
    if told.tasks != seen.tasks:
        yield f"tasks: {told.tasks} in the manifest, {seen.tasks} planned"
    if told.dataset_fingerprint != seen.dataset_fingerprint:
        yield f"dataset_fingerprint: {told.dataset_fingerprint} in the manifest, {seen.dataset_fingerprint} planned"
    policy = told.repeat_policy
    if set(seen.repeats) - {policy.num_repeats}:
        found = " or ".join(map(str, seen.repeats))
        yield f"num_repeats: {policy.num_repeats} in the manifest, {found} planned"
    if policy.add_seed and not seen.seeds_follow_repeats:
        yield "add_seed: on in the manifest, and rows are planned whose seed is not their rollout index"
    if not policy.add_seed and seen.seeds_vary:
        yield "add_seed: off in the manifest, and repeats of a task are planned with different seeds"


def _faults(error: ValidationError) -> Iterator[str]:
    for detail in error.errors(include_url=False, include_input=False, include_context=False):
        place = ".".join(map(str, detail["loc"]))
        yield f"  {place + ': ' if place else ''}{detail['msg'].removeprefix('Value error, ')}"

"""What an environment or a benchmark says of itself: its `manifest.yaml`, as one typed value.

Rules:
* A field that is not one of these is an error; so is one that a profile needs and that is absent.
* A message says file and line, the field, and what to write.
* `resources_server` and `agent_server` name implementations on the shelf, `model_server` a server of the configuration.

Source: servers.md §8.12.
"""

import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StringConstraints,
    ValidationError,
    model_validator,
)

from rollbook.config.placed_yaml import Place, PlacedYaml, read_placed_yaml
from rollbook.config.tree import did_you_mean
from rollbook.config.types import Domain
from rollbook.errors import ConfigError

MANIFEST_FILE: Final = "manifest.yaml"
Kind = Literal["environment", "benchmark"]
Profile = Literal["custom-gym-verifier", "custom-gym-agent-loop", "external-agent-loop", "external-rollout-driver"]
Determinism = Literal["seeded", "stochastic", "unknown"]
Lifecycle = Literal["active", "deprecated"]

NEEDED_BY_PROFILE: Final[Mapping[str, tuple[str, ...]]] = {
    "custom-gym-verifier": ("model_server", "resources_server"),
    "custom-gym-agent-loop": ("model_server",),
    "external-agent-loop": (),
    "external-rollout-driver": ("rollout_driver",),
}
"""The fields that a profile needs beside those of every manifest."""
COMPOSITION: Final = ("resources_server", "agent_server", "model_server", "dataset_owner", "datasets")
"""The fields that repeat what the configuration says."""
_SHOWN: Final = 60
_ENDS: Final = 2
_SPDX: Final = re.compile(r"\(*[A-Za-z0-9][A-Za-z0-9.+:-]*\)*( (AND|OR|WITH) \(*[A-Za-z0-9][A-Za-z0-9.+:-]*\)*)*")

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$")]


def _two_numbers(ends: object) -> object:
    """Refuse what are not two finite numbers, the lower one first; true and false are none."""
    if isinstance(ends, (list, tuple)) and len(ends) == _ENDS:
        finite = all(type(end) in {int, float} and abs(end) <= sys.float_info.max for end in ends)
        if finite and ends[0] <= ends[1]:
            return ends
    raise ValueError("not two numbers, the lower one first")


def _licence(text: str) -> str:
    if not _SPDX.fullmatch(text) or text.count("(") != text.count(")"):
        raise ValueError("no SPDX expression")
    return text


def _no_two_alike(names: Sequence[str]) -> Sequence[str]:
    if len({*names}) < len(names):
        raise ValueError("a name stands twice")
    return names


class _Part(BaseModel):
    """A value of a manifest: nothing but its fields, and it stays as it is."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)


class ManifestReward(_Part):
    """Between which ends rewards lie, and which of them is the good one."""

    range: Annotated[tuple[float, float], BeforeValidator(_two_numbers)]
    higher_is_better: StrictBool


class ManifestDataset(_Part):
    """One data set of the configuration."""

    name: Text
    type: Literal["train", "validation", "example", "benchmark"]
    jsonl_fpath: Text
    prepare_script: Text | None = None
    prompt_config: Text | None = None
    num_repeats: Annotated[StrictInt, Field(ge=1)] = 1


class AdoptedFrom(_Part):
    """Where an environment was made first: `ref` is a revision there; whether its rewards were shown to be equal."""

    source: Text
    ref: Text
    reconciled: StrictBool


class EnvironmentManifest(_Part):
    """What an environment or a benchmark says of itself.

    `config_path` is relative to the manifest's folder. `reward.range` is (lowest, highest). `determinism` is `seeded`
    when the same request always has the same reward. Source: servers.md §8.12.
    """

    name: Name
    version: Text
    experimental: StrictBool = True
    kind: Kind
    integration_profile: Profile
    domain: Domain
    description: Text
    modality: Text
    licensing: Annotated[str, AfterValidator(_licence)] = "unknown"
    authors: Annotated[tuple[Text, ...], Field(min_length=1), AfterValidator(_no_two_alike)]
    reward: ManifestReward
    determinism: Determinism = "unknown"
    config_path: Annotated[str, Field(pattern=r"^[^/].*\.ya?ml$")] = "config.yaml"
    dataset_owner: Name | None = None
    resources_server: Name | None = None
    agent_server: Name
    datasets: tuple[ManifestDataset, ...]
    model_server: Name | None = None
    rollout_driver: Annotated[str, Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")] | None = None
    grading_mode: Text | None = None
    session_model: Literal["episode", "step"] | None = None
    state: Literal["none", "per_session"] | None = None
    sandbox: Text | None = None
    canonical_split: Text | None = None
    prompt_source: Literal["template", "prepared", "agent"] = "template"
    standard_prompt_config: Text | None = None
    adopted_from: AdoptedFrom | None = None
    lifecycle: Lifecycle = "active"

    @model_validator(mode="after")
    def _says_what_its_profile_needs(self) -> Self:
        broken = [f"{field}: {words}" for field, words in _broken_rules(self)]
        if broken:
            raise ValueError("\n".join(broken))
        return self


def _broken_rules(manifest: EnvironmentManifest) -> Iterator[tuple[str, str]]:
    profile = manifest.integration_profile
    for field in NEEDED_BY_PROFILE[profile]:
        if getattr(manifest, field) is None:
            yield field, f"the profile {profile} needs it; write {_WRITE[field]}"
    if manifest.rollout_driver is not None and profile != "external-rollout-driver":
        yield "rollout_driver", f"the profile {profile} has none; take it out, or write external-rollout-driver"
    if manifest.kind == "benchmark":
        yield from _broken_rules_of_benchmarks(manifest)
    if manifest.prompt_source == "prepared" and manifest.standard_prompt_config is not None:
        yield (
            "standard_prompt_config",
            "prepared rows have their prompts; take it out, or write prompt_source: template",
        )


def _broken_rules_of_benchmarks(manifest: EnvironmentManifest) -> Iterator[tuple[str, str]]:
    if manifest.canonical_split is None:
        yield "canonical_split", f"a benchmark needs it; write {_WRITE['canonical_split']}"
    if manifest.prompt_source == "template" and manifest.standard_prompt_config is None:
        words = "a benchmark whose prompts come from a template needs it"
        yield (
            "standard_prompt_config",
            f"{words}; write {_WRITE['standard_prompt_config']}, or prompt_source: prepared",
        )


def read_manifest(path: Path) -> EnvironmentManifest:
    """Return the manifest in a file.

    Raises:
        FileNotFoundError: no such file.
        ConfigError: a file that cannot be read, or says what a manifest cannot: everything that is wrong, one a line.

    """
    return manifest_of(read_placed_yaml(path, "a manifest"))


def manifest_of(read: PlacedYaml) -> EnvironmentManifest:
    """Return what was read as a manifest.

    Raises:
        ConfigError: fields that are absent, unknown or wrong: all of them, one a line.

    """
    try:
        return EnvironmentManifest.model_validate(read.tree)
    except ValidationError as error:
        details = error.errors(include_url=False)
        raise ConfigError("\n".join(line for detail in details for line in _told(read, detail))) from None


def _told(read: PlacedYaml, detail: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong: where, the field, and what to write instead."""
    place: Place = tuple(detail["loc"])
    if not place:
        for line in str(detail["ctx"]["error"]).splitlines():
            yield f"{read.at((line.partition(':')[0],))}: {line}"
        return
    field = ".".join(map(str, place))
    known = ".".join(part for part in place if isinstance(part, str))
    write = _WRITE.get(known, "a text that is not empty")
    match detail["type"]:
        case "missing":
            named = f"{field}: " if len(place) == 1 else ""
            words = f"{field} is missing; write {named}{write}"
        case "extra_forbidden":
            near = did_you_mean(str(place[-1]), _fields_beside(known))
            words = f"{field} is no field of a manifest; take it out.{near}"
        case _:
            words = f"{field} is {_short(detail['input'])}; write {write}"
    yield f"{read.at(place)}: {words}"


def _fields_beside(known: str) -> list[str]:
    above, dot, _ = known.rpartition(".")
    return [field.removeprefix(above + dot) for field in _WRITE if field.startswith(above + dot)]


def _short(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # Python writes no number of so many digits
        return "a number of thousands of digits"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _one_of(words: Sequence[str]) -> str:
    return f"one of {', '.join(words)}"


_WRITE: Final[Mapping[str, str]] = {
    "name": "the name of its folder: letters, digits, _ . -",
    "version": 'a version in quotes, such as "0.1.0"',
    "experimental": "true or false",
    "kind": "environment or benchmark",
    "integration_profile": _one_of([*NEEDED_BY_PROFILE]),
    "domain": _one_of([*Domain]),
    "description": "one sentence about it",
    "modality": "what its tasks are made of, such as text",
    "licensing": "an SPDX expression such as Apache-2.0, or one of internal, proprietary, unknown",
    "authors": "[<name>, …], at least one and each once",
    "reward": "{range: [<lowest>, <highest>], higher_is_better: true}",
    "reward.range": "[<lowest>, <highest>], two numbers, the lower one first",
    "reward.higher_is_better": "true or false",
    "determinism": _one_of(["seeded", "stochastic", "unknown"]),
    "config_path": "a YAML file, relative to the manifest's folder",
    "dataset_owner": "the server of the configuration that declares the data sets",
    "resources_server": "the folder under resources_servers/ that judges",
    "agent_server": "the folder under responses_api_agents/ that acts",
    "datasets": "[{name: <name>, type: example, jsonl_fpath: <file>, num_repeats: 1}], or [] where there are none",
    "datasets.name": "the data set's name",
    "datasets.type": _one_of(["train", "validation", "example", "benchmark"]),
    "datasets.jsonl_fpath": "the file of rows, relative to a search root",
    "datasets.prepare_script": "the script that writes the rows",
    "datasets.prompt_config": "the file of its prompt",
    "datasets.num_repeats": "a whole number from 1 on",
    "model_server": "the model server's name in the configuration, such as policy_model",
    "rollout_driver": "module:function",
    "grading_mode": "how answers are read and compared, one word",
    "session_model": "episode or step",
    "state": "none or per_session",
    "sandbox": "the kind of sandbox that it needs, one word",
    "canonical_split": "the split that results speak of, such as benchmark",
    "prompt_source": _one_of(["template", "prepared", "agent"]),
    "standard_prompt_config": "the file of the prompt, such as prompt.yaml",
    "adopted_from": "{source: <where>, ref: <revision>, reconciled: true or false}",
    "adopted_from.source": "where it was made first, an address",
    "adopted_from.ref": "a revision there",
    "adopted_from.reconciled": "true or false",
    "lifecycle": "active or deprecated",
}


def manifest_json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of a manifest, with what profiles, benchmarks and prompts need."""
    schema = EnvironmentManifest.model_json_schema()
    for field, write in _WRITE.items():
        if field in schema["properties"]:
            schema["properties"][field].setdefault("description", write)
    rules = [_when("integration_profile", profile, needed) for profile, needed in NEEDED_BY_PROFILE.items() if needed]
    rules += [_when("kind", "benchmark", ("canonical_split",))]
    others = [profile for profile in NEEDED_BY_PROFILE if profile != "external-rollout-driver"]
    rules += [_never({"integration_profile": {"enum": others}}, "rollout_driver")]
    rules += [_never({"prompt_source": {"const": "prepared"}}, "standard_prompt_config")]
    told = {"prompt_source": {"enum": ["prepared", "agent"]}, "kind": {"const": "environment"}}
    either = [{"properties": {field: test}, "required": [field]} for field, test in told.items()]
    rules += [{"anyOf": [*either, _present("standard_prompt_config")]}]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "allOf": rules}


def _present(*fields: str) -> dict[str, Any]:
    return {"required": [*fields], "properties": {field: {"not": {"type": "null"}} for field in fields}}


def _when(field: str, value: str, needed: Sequence[str]) -> dict[str, Any]:
    return {"if": {"properties": {field: {"const": value}}, "required": [field]}, "then": _present(*needed)}


def _never(tests: Mapping[str, Any], field: str) -> dict[str, Any]:
    condition = {"properties": dict(tests), "required": [*tests]}
    return {"if": condition, "then": {"properties": {field: {"type": "null"}}}}

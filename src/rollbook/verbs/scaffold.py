"""What `gym env init` writes: from a name and a profile to the text of every file. Pure, but for reading templates.

Rules:
* What is written works as it stands: it is validated, tested and run before anything in it is edited.
* A resources server that is reused is left alone; an environment over it is a configuration and a manifest, and the
  rows of a benchmark over it are its examples: of other rows it may know no answer.
* The composition in the manifest is what the configuration beside it composes.

Source: servers.md §8.12, §10.2.
"""

import builtins
import keyword
import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec
import yaml

from rollbook.config.catalog import Shelf, named_folder, selected_path, shelf_entries
from rollbook.config.composed import Composed, composed_by, parsed_without_model
from rollbook.config.manifest import EnvironmentManifest, Profile
from rollbook.config.names import AGENTS, ENVIRONMENT_SERVERS, MODELS, RESERVED_KEYS, RESOURCES_SERVERS
from rollbook.errors import ConfigError

_USAGE_EXIT_CODE: Final = 2
_TEMPLATES: Final = "scaffold_files"
_PLACE: Final = re.compile(r"@([a-z_]+)@")
_TRIES: Final = 2
_AGENT_FILES: Final[Mapping[str, str]] = {
    "custom-gym-agent-loop": "agent_loop",
    "external-agent-loop": "external_agent",
}
_IMPORTED: Final = frozenset(
    {"Base", "Path", "Mapping", "ConfigDict", "VerifierFixture", "Row", "Judged", "Scripted", "Any"}
)
_DRIVEN: Final = "external-rollout-driver"


class Target(StrEnum):
    """What is to be made."""

    RESOURCES_SERVER = "resources-server"
    ENVIRONMENT = "environment"
    BENCHMARK = "benchmark"

    @property
    def shelf(self) -> Shelf:
        """Where it lies."""
        return {"resources-server": Shelf.RESOURCES_SERVER, "environment": Shelf.ENVIRONMENT}.get(self, Shelf.BENCHMARK)


class Wanted(msgspec.Struct, frozen=True):
    """What to make: its kind and name, its profile, whose verifier it has, what rewards it gives, and its licence."""

    target: Target
    name: str
    profile: Profile = "custom-gym-verifier"
    reuse: str | None = None
    low: float = 0.0
    high: float = 1.0
    higher_is_better: bool = True
    licensing: str = "Apache-2.0"


class _Judge(msgspec.Struct, frozen=True):
    """The resources server of what is made: its folder's name, its configuration, and what that composes."""

    folder: str
    config: str
    composed: Composed
    is_own: bool = False

    @property
    def examples(self) -> Mapping[str, object] | None:
        """The example rows in the folder of a server that is reused, as they are declared; None where it has none."""
        declared = () if self.is_own else self.composed.datasets
        return next((one for one in declared if one.get("type") == "example" and self._holds(one)), None)

    def _holds(self, rows: Mapping[str, object]) -> bool:
        return str(rows.get("jsonl_fpath")).startswith(f"{RESOURCES_SERVERS}/{self.folder}/")


def planned_files(wanted: Wanted) -> dict[PurePosixPath, str]:
    """Return the files to write, relative to a search root, with their texts.

    Raises:
        ConfigError: a name that no component can have, ends of a range that are none, or a verifier that is not there.
        ConfigPathNotFoundError: no root holds the verifier to reuse.

    """
    _refuse(wanted)
    own_judge = wanted.reuse is None
    judge = _own_judge(wanted) if own_judge else _reused(wanted.reuse or "")
    words = _words(wanted, judge)
    planned: dict[PurePosixPath, str] = {}
    if own_judge:
        planned |= _filled("verifier", PurePosixPath(RESOURCES_SERVERS, wanted.name), words)
    if wanted.target is Target.RESOURCES_SERVER:
        return planned
    if wanted.profile in _AGENT_FILES:
        planned |= _filled(_AGENT_FILES[wanted.profile], PurePosixPath(AGENTS, words["agent"]), words)
    home = PurePosixPath(wanted.target.shelf, wanted.name)
    planned |= {home / "__init__.py": "", home / "config.yaml": _yaml(_config(wanted, judge))}
    planned[home / "manifest.yaml"] = manifest_text(_manifest(wanted, judge))
    if wanted.profile == _DRIVEN:
        planned |= _filled("driver", home, words)
    if wanted.target is Target.BENCHMARK:
        planned |= _filled("benchmark" if judge.examples is None else "benchmark_of_examples", home, words)
    listed = "\n".join(f"* `{path}`" for path in sorted([*map(str, planned), f"{home}/README.md"]))
    return planned | _filled("environment", home, words | {"files": listed})


def manifest_text(manifest: EnvironmentManifest) -> str:
    """Return a manifest as its file has it: every field that says something, in the order of the model."""
    told = manifest.model_dump(mode="json", exclude_none=True)
    told["reward"]["range"] = list(manifest.reward.range)
    return _yaml(told)


def _refuse(wanted: Wanted) -> None:
    name = wanted.name
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name) or keyword.iskeyword(name):
        raise _usage(
            f"{name!r} cannot be the name of a folder of Python code; write letters, digits and _, such as my_env"
        )
    if yaml.safe_load(name) != name:
        raise _usage(f"{name!r} is no text in YAML but {yaml.safe_load(name)!r}; choose another name")
    if name in RESERVED_KEYS or name == "policy_model":
        raise _usage(f"{name!r} has a meaning of its own in configurations; choose another name")
    if not wanted.low < wanted.high or not all(abs(end) < float("inf") for end in (wanted.low, wanted.high)):
        raise _usage(f"--reward-range {wanted.low:g} {wanted.high:g}: write two numbers, the lower one first")
    if wanted.target is Target.RESOURCES_SERVER and wanted.reuse is not None:
        raise _usage("--reuse-verifier is for --environment and --benchmark; a resources server is a verifier itself")
    if wanted.target is Target.RESOURCES_SERVER and wanted.profile != "custom-gym-verifier":
        raise _usage(
            f"--profile {wanted.profile} is for --environment and --benchmark: it says who acts, not who judges"
        )


def refuse_taken(wanted: Wanted, root: Path) -> None:
    """Refuse a name that another root has on the same shelf: what is made would hide it, or be hidden.

    Raises:
        ConfigError: it is taken.

    """
    shelves = [] if wanted.reuse is not None else [Shelf.RESOURCES_SERVER]
    for shelf in dict.fromkeys([*shelves, wanted.target.shelf]):
        for entry in shelf_entries(shelf):
            if entry.name == wanted.name and entry.path.parent.resolve() != (root / shelf).resolve():
                reuse = f", or --reuse-verifier {wanted.name}" if shelf is Shelf.RESOURCES_SERVER else ""
                raise _usage(f"{wanted.name} is there already: {entry.path}; choose another name{reuse}")


def _usage(message: str) -> ConfigError:
    error = ConfigError(message)
    error.exit_code = _USAGE_EXIT_CODE
    return error


def _own_judge(wanted: Wanted) -> _Judge:
    name = wanted.name
    rows = {"name": "example", "type": "example", "jsonl_fpath": f"{RESOURCES_SERVERS}/{name}/data/example.jsonl"}
    composed = Composed(
        name, f"{name}_simple_agent", name, "simple_agent", "policy_model", name, ({**rows, "num_repeats": 1},), None
    )
    return _Judge(name, f"{RESOURCES_SERVERS}/{name}/configs/{name}.yaml", composed, is_own=True)


def _reused(name: str) -> _Judge:
    named_folder(Shelf.RESOURCES_SERVER, name)
    path = selected_path(Shelf.RESOURCES_SERVER, name)
    composed = composed_by(parsed_without_model(path))
    if composed.judge is None or composed.resources_server != name:
        raise ConfigError(f"{path} binds no agent to the resources server {name}, so an environment cannot include it")
    return _Judge(name, f"{RESOURCES_SERVERS}/{name}/configs/{name}.yaml", composed)


def _agent(wanted: Wanted, judge: _Judge) -> tuple[str, str]:
    """Return (name in the configuration, implementation) of the agent that acts."""
    if wanted.profile in _AGENT_FILES:
        return f"{wanted.name}_{wanted.name}_agent", f"{wanted.name}_agent"
    return judge.composed.agent, judge.composed.agent_server


def _words(wanted: Wanted, judge: _Judge) -> dict[str, str]:
    """Return what stands in templates for `@word@`."""
    right, wrong = (wanted.high, wanted.low) if wanted.higher_is_better else (wanted.low, wanted.high)
    return {
        "name": wanted.name,
        "class": _class_name(wanted.name),
        "agent": f"{wanted.name}_agent",
        "agent_server": _agent(wanted, judge)[1],
        "server": judge.folder,
        "examples": str(PurePosixPath(*PurePosixPath(str((judge.examples or {}).get("jsonl_fpath", ""))).parts[2:])),
        "description": _description(wanted, judge),
        "kind": wanted.target.value,
        "profile": wanted.profile,
        "low": repr(wanted.low),
        "high": repr(wanted.high),
        "right": repr(right),
        "wrong": repr(wrong),
        "higher": repr(wanted.higher_is_better),
        "better": "more" if wanted.higher_is_better else "less",
        "tries": str(_TRIES),
    }


def _class_name(name: str) -> str:
    """Return a name as classes are written; one that the templates import, or Python has, has a word more."""
    written = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    taken = written in _IMPORTED or keyword.iskeyword(written) or hasattr(builtins, written)
    return f"{written}Env" if taken else written


def _description(wanted: Wanted, judge: _Judge) -> str:
    return "Sums of two numbers" if wanted.reuse is None else f"Tasks that {judge.folder} judges"


def _config(wanted: Wanted, judge: _Judge) -> dict[str, object]:
    agent, implementation = _agent(wanted, judge)
    config: dict[str, object] = {"config_paths": [judge.config]}
    if wanted.profile in _AGENT_FILES:
        config["_delete_key"] = judge.composed.agent
        config[agent] = {AGENTS: {implementation: _bound(judge.composed.judge)}}
    if wanted.target is Target.BENCHMARK and judge.composed.judge is not None:
        config[judge.composed.judge] = {
            RESOURCES_SERVERS: {judge.folder: {"datasets": [_benchmark_rows(wanted, judge)]}}
        }
    fronted = {"entrypoint": "app.py", "agent_server": {"type": AGENTS, "name": agent}}
    config[f"{wanted.name}_environment_server"] = {ENVIRONMENT_SERVERS: {"legacy_agent": fronted}}
    if wanted.profile == _DRIVEN:
        config["rollout_collection_driver"] = _driver(wanted)
    return config


def _bound(judge: str | None) -> dict[str, object]:
    return {
        "entrypoint": "app.py",
        "resources_server": {"type": RESOURCES_SERVERS, "name": judge},
        "model_server": {"type": MODELS, "name": "policy_model"},
    }


def _driver(wanted: Wanted) -> str:
    return f"{wanted.target.shelf}.{wanted.name}.driver:drive"


def _benchmark_rows(wanted: Wanted, judge: _Judge) -> dict[str, object]:
    home, prompt = f"{Shelf.BENCHMARK}/{wanted.name}", _prompt(wanted, judge)
    return {
        "name": wanted.name,
        "type": "benchmark",
        "jsonl_fpath": f"{home}/data/{wanted.name}.jsonl",
        "prepare_script": f"{home}/prepare.py",
        **({} if prompt is None else {"prompt_config": prompt}),
        "num_repeats": 1,
    }


def _prompt(wanted: Wanted, judge: _Judge) -> str | None:
    """Return the template of a benchmark's prompts, None where its rows hold them."""
    if judge.examples is None:
        return f"{Shelf.BENCHMARK}/{wanted.name}/prompt.yaml"
    declared = judge.examples.get("prompt_config")
    return None if declared is None else str(declared)


def _manifest(wanted: Wanted, judge: _Judge) -> EnvironmentManifest:
    benchmark = wanted.target is Target.BENCHMARK
    own_agent = wanted.profile in _AGENT_FILES
    prompt = _prompt(wanted, judge) if benchmark else None
    prompts: dict[str, object] = {"canonical_split": "benchmark"} if benchmark else {}
    prompts["prompt_source"] = "prepared" if prompt is None else "template"
    prompts["standard_prompt_config"] = prompt
    told: dict[str, object] = {
        "name": wanted.name,
        "version": "0.1.0",
        "kind": "benchmark" if benchmark else "environment",
        "integration_profile": wanted.profile,
        "domain": "other",
        "description": _description(wanted, judge),
        "modality": "text",
        "licensing": wanted.licensing,
        "authors": ["Who wrote it"],
        "reward": {"range": [wanted.low, wanted.high], "higher_is_better": wanted.higher_is_better},
        "determinism": "seeded" if wanted.reuse is None else "unknown",
        "resources_server": judge.folder,
        "agent_server": _agent(wanted, judge)[1],
        "model_server": "policy_model" if own_agent else judge.composed.model_server,
        "dataset_owner": judge.composed.dataset_owner,
        "datasets": [_benchmark_rows(wanted, judge)] if benchmark else list(judge.composed.datasets),
        "rollout_driver": _driver(wanted) if wanted.profile == _DRIVEN else None,
        **prompts,
    }
    return EnvironmentManifest.model_validate(told)


def _filled(group: str, home: PurePosixPath, words: Mapping[str, str]) -> dict[PurePosixPath, str]:
    """Return the files of one group of templates, every `@word@` in names and texts replaced."""

    def fill(text: str) -> str:
        return _PLACE.sub(lambda found: words.get(found[1], found[0]), text)

    top = files("rollbook.verbs").joinpath(_TEMPLATES, group)
    return {
        home / fill(str(path).removesuffix(".txt")): fill(file.read_text(encoding="utf-8"))
        for path, file in _below(top, PurePosixPath())
    }


def _below(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, Traversable]]:
    for child in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if child.is_dir():
            yield from _below(child, path / child.name)
        else:
            yield path / child.name, child


def _yaml(told: Mapping[str, object]) -> str:
    return yaml.safe_dump(dict(told), sort_keys=False, allow_unicode=True, width=110)

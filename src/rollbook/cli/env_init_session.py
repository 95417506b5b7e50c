"""One `gym env init`, from its flags to what it prints.

Rules:
* A resources server that is there is left as it is, and that is said; an environment's files that differ are an error.

Source: servers.md §10.2.
"""

import os
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from rollbook.cli.terminal import say
from rollbook.config.catalog import Shelf
from rollbook.config.manifest import Profile
from rollbook.config.roots import add_search_dirs
from rollbook.errors import ConfigError
from rollbook.verbs.scaffold import Target, Wanted, planned_files, refuse_taken
from rollbook.verbs.scaffold_reuse import as_reused
from rollbook.verbs.scaffold_write import write_new_files

_TARGETS: Final = {
    "resources_server": Target.RESOURCES_SERVER,
    "environment": Target.ENVIRONMENT,
    "benchmark": Target.BENCHMARK,
}
_HINT: Final = (
    "\nRemove them to have them written anew, choose another name, or take the resources server as it is with "
    "--reuse-verifier NAME."
)
_UP_TO_DATE: Final = "already up to date"


def make(given: Mapping[str, Any], root: Path) -> None:
    """Write what the flags in `given` ask for below `root`, and say what was written."""
    wanted = _wanted(given)
    root = _root(root, given["search_dir"])
    wanted = as_reused(wanted, given["reward_range"], higher_is_better=given["higher_is_better"])
    planned = planned_files(wanted)
    refuse_taken(wanted, root)
    home = root / wanted.target.shelf / wanted.name
    if wanted.target is Target.RESOURCES_SERVER and home.is_dir() and any(_differs(root, planned)):
        say(f"{home} is there already and was left as it is")
        return
    written = write_new_files(root, planned, _HINT)
    if not written:
        say(f"{home}: {_UP_TO_DATE}")
        return
    for path in written:
        say(f"wrote {os.path.relpath(path)}")
    _say_what_to_do_next(wanted, given["search_dir"])


def _differs(root: Path, planned: Mapping[Any, str]) -> list[Path]:
    """Return the planned files that are not there, or have other contents."""
    paths = {root / path: text.encode() for path, text in planned.items()}
    return [path for path, text in paths.items() if not path.is_file() or path.read_bytes() != text]


def _wanted(given: Mapping[str, Any]) -> Wanted:
    named = [(target, given[flag]) for flag, target in _TARGETS.items() if given[flag] is not None]
    if len(named) != 1:
        raise click.UsageError(
            "say what to make: one of --resources-server, --environment, --benchmark, with its NAME."
        )
    target, name = named[0]
    profile: Profile = given["profile"] or "custom-gym-verifier"
    return Wanted(target, name, profile, given["reuse_verifier"])


def _root(root: Path, search_dirs: Sequence[str]) -> Path:
    """Return the search root to write below; a folder inside of one is none."""
    root = root.absolute()
    if root.name in {*Shelf}:
        raise ConfigError(
            f"{root} is one of the folders of a search root; go to {root.parent}, or name it: --search-dir"
        )
    if not root.is_dir():
        raise ConfigError(f"{root} is no folder; make it first, or name another with --search-dir")
    holds_nothing_yet = not any((root / shelf).is_dir() for shelf in Shelf)
    add_search_dirs(search_dirs[1:] if holds_nothing_yet else search_dirs)
    return root


def _say_what_to_do_next(wanted: Wanted, search_dirs: Sequence[str]) -> None:
    roots = "".join(f" --search-dir {shlex.quote(folder)}" for folder in search_dirs)
    flag, name = wanted.target.shelf.flag, wanted.name
    run = f"gym eval run{roots} {flag} {name} --model-type simulated_model -o results/{name}.jsonl"
    whose = f"{flag} {name}" if wanted.target is Target.RESOURCES_SERVER else name
    steps = [f"gym env validate{roots} {whose}", f"gym env test{roots} {name}", run]
    if wanted.target is Target.BENCHMARK:
        steps.insert(0, f"gym eval prepare{roots} --benchmark {name}")
    say("next:")
    for step in steps:
        say(f"  {step}")

"""What is written into every configuration that does not say otherwise.

Rules:
* A default never replaces a value that is given.
* A folder to write to is relative to the current directory, and absolute once it is here.

Source: servers.md §1.5 steps 11 and 12.
"""

from pathlib import Path
from typing import Final

from rollbook.config.names import AGENTS
from rollbook.config.tree import Tree, blocks, mapping_at
from rollbook.errors import ConfigError

_DEFAULTS: Final = {
    "skip_venv_if_present": False,
    "dry_run": False,
    "server_spinup_timeout_seconds": 600,
    "model_endpoint_readiness_timeout_seconds": 600,
    "results_dir": "results",
    "cache_dir": "cache",
}
_FOLDERS: Final = ("results_dir", "cache_dir", "nemo_gym_log_dir", "model_call_capture_dir")
_TIMEOUTS: Final = ("server_spinup_timeout_seconds", "model_endpoint_readiness_timeout_seconds")
_FOR_AGENTS: Final = ("skip_verification", "skip_verification_reward")


def with_defaults(tree: Tree, view: Tree) -> Tree:
    """Return `tree` with the defaults below it and its folders absolute; `view` is the same tree, resolved.

    Raises:
        ConfigError: a timeout that is no number of seconds.

    """
    for key in _TIMEOUTS:
        seconds = view.get(key, 0)
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or seconds < 0:
            raise ConfigError(f"`{key}` is no number of seconds; write ++{key}=600")
    result: Tree = {**_DEFAULTS, **tree}
    for key in _FOLDERS:
        folder = view.get(key, _DEFAULTS.get(key))
        if isinstance(folder, str) and "${" not in folder:
            result[key] = str(Path(folder).expanduser().absolute())
    return _with_agent_switches(result)


def _with_agent_switches(tree: Tree) -> Tree:
    """Copy `skip_verification` and its reward into every agent that does not set them itself."""
    given = {key: tree[key] for key in _FOR_AGENTS if tree.get(key) is not None}
    if given:
        for name, agent_type, block in list(blocks(tree, AGENTS)):
            tree[name] = {**(mapping_at(tree, name) or {}), AGENTS: {agent_type: {**given, **block}}}
    return tree

"""One `gym env prefetch`: the environments of a configuration's servers, made and named.

Rules:
* Which server has which interpreter goes to standard output; what is being made goes to standard error.

Source: servers.md §2.3, §10.2.
"""

from collections.abc import Mapping
from typing import Any

from omegaconf import DictConfig

from rollbook.cli.configuration import resolved_configuration
from rollbook.cli.event_loop import in_event_loop
from rollbook.cli.terminal import note, say, say_json
from rollbook.config.instances import require_server_instances
from rollbook.config.parser import GlobalConfigDictParserConfig
from rollbook.report.shapes import VERSION
from rollbook.servers.serving.interpreters import interpreters
from rollbook.servers.serving.isolation import Isolation


def prefetch(given: Mapping[str, Any], *, as_json: bool) -> None:
    """Make the environments that the flags in `given` ask for, and print which server has which interpreter."""
    wanted = {**given, "isolate": given.get("isolate") or Isolation.UNMET.value}
    cfg = resolved_configuration(wanted, settings=GlobalConfigDictParserConfig.NO_MODEL_GLOBAL_CONFIG_DICT)
    show_interpreters(cfg, as_json=as_json)


def show_interpreters(cfg: DictConfig, *, as_json: bool) -> None:
    """Make what is missing of the environments of `cfg`, and print the interpreter of each server that has one."""
    found = in_event_loop(interpreters(cfg, require_server_instances(cfg), note))
    if as_json:
        say_json(VERSION | {"interpreters": {name: str(python) for name, python in found.items()}})
    elif not found:
        say("No server needs an environment of its own: this Python has all packages. --isolate-all makes them anyway.")
    else:
        for name, python in found.items():
            say(f"{name}  {python}")

"""Files, `env.yaml`, a program's own settings and the command line → one configuration.

Rules:
* Later sources win: files, `env.yaml`, the programmatic settings, the command line.
* Passes over the merged tree are pure functions, applied in one order, each in a module of its own.
* A process that was handed a finished configuration by its parent uses it as it is.

Source: servers.md §1.2, §1.5.
"""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from rollbook.config.addresses import PortSource, with_addresses
from rollbook.config.composition import compose_agents
from rollbook.config.defaults import with_defaults
from rollbook.config.environments import with_environment_servers
from rollbook.config.files import IncludeWalk, Places, Source, config_paths_in, configuration, plain, read_yaml, stacked
from rollbook.config.instances import first_block, server_instances
from rollbook.config.missing import check_values, resolved, view_of
from rollbook.config.names import (
    DUMMY_MODEL,
    MODELS,
    NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME,
    NEMO_GYM_CONFIG_PATH_ENV_VAR_NAME,
    POLICY_MODEL,
)
from rollbook.config.operators import apply_operators
from rollbook.config.overrides import Override, apply_overrides, parse_overrides, tree_of
from rollbook.config.pairing import check_models
from rollbook.config.references import check_almost_servers, check_references
from rollbook.config.roots import require_read_path, resolve_read_path
from rollbook.config.secrets import masked
from rollbook.config.tree import Tree
from rollbook.config.types import ServerInstanceConfig
from rollbook.errors import ConfigError

__all__ = [
    "NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME",
    "NEMO_GYM_CONFIG_PATH_ENV_VAR_NAME",
    "GlobalConfigDictParser",
    "GlobalConfigDictParserConfig",
    "get_first_server_config_dict",
    "get_global_config_dict",
    "maybe_get_global_config_dict",
    "set_global_config_dict",
]

_DUMMY_POLICY_MODEL: Mapping[str, object] = {
    MODELS: {
        DUMMY_MODEL: {
            "entrypoint": "app.py",
            "openai_base_url": "${policy_base_url}",
            "openai_api_key": "${policy_api_key}",
            "openai_model": "${policy_model_name}",
        }
    }
}


class GlobalConfigDictParserConfig(msgspec.Struct, frozen=True):
    """Which sources are read, and how the result is given out.

    `overrides` stands in for the command line's tokens; `offline` gives every server port -1 and asks no socket;
    `hide_secrets` masks the result, which can then be shown but not served; `private_head` is for a deployment that
    nobody else is to find, and gives its head server any free port. Without `with_agents` no agent is asked for
    anything, and the models that they name need not be there.
    """

    NO_MODEL_GLOBAL_CONFIG_DICT: ClassVar[Mapping[str, object]] = {
        "policy_base_url": "http://localhost/no-model",
        "policy_api_key": "no-model",
        "policy_model_name": "no-model",
        POLICY_MODEL: _DUMMY_POLICY_MODEL,
    }

    dotenv_path: str | Path | None = None
    initial_global_config_dict: DictConfig | Mapping[str, object] | None = None
    skip_load_from_cli: bool = False
    skip_load_from_dotenv: bool = False
    hide_secrets: bool = False
    offline: bool = False
    private_head: bool = False
    with_agents: bool = True
    overrides: list[str] | None = None


class _Layers(msgspec.Struct, frozen=True):
    """What was read: the files, what lies on top of them, and the command line."""

    files: tuple[Source, ...]
    above: tuple[Source, ...]
    overrides: tuple[Override, ...]

    def merged(self) -> Tree:
        return plain(apply_overrides(stacked((*self.files, *self.above)), self.overrides))

    def places(self) -> Places:
        typed = Source("the overrides", configuration(tree_of(self.overrides), "the overrides"))
        return Places((*self.files, *self.above, typed))


class GlobalConfigDictParser(msgspec.Struct):
    """The parser; `ports` is where free ports come from."""

    ports: PortSource = msgspec.field(default_factory=PortSource)

    def parse(self, config: GlobalConfigDictParserConfig | None = None) -> DictConfig:
        """Return the merged, checked and completed configuration.

        Raises:
            ConfigError: any of the errors of servers.md §1.10, which are all of this type.

        """
        config = config or GlobalConfigDictParserConfig()
        layers = _read(config)
        places = layers.places()
        written = compose_agents(apply_operators(layers.merged(), places), layers.overrides)
        written = _with_dummy_model(with_environment_servers(written), config)
        view = view_of(configuration(written, "the merged configuration"))
        complete = with_defaults(
            with_addresses(written, view, self.ports, offline=config.offline, private_head=config.private_head), view
        )
        cfg = configuration(complete, "the merged configuration")
        check_values(cfg, places)
        _check(resolved(cfg), written, places, with_agents=config.with_agents)
        return configuration(masked(resolved(cfg)), "the masked configuration") if config.hide_secrets else cfg

    def parse_no_environment(
        self, initial_global_config_dict: DictConfig | Mapping[str, object] | None = None
    ) -> DictConfig:
        """Return the configuration that a program's own settings make, without a command line and an `env.yaml`.

        Raises:
            ConfigError: as for `parse`.

        """
        return self.parse(
            GlobalConfigDictParserConfig(
                initial_global_config_dict=initial_global_config_dict,
                skip_load_from_cli=True,
                skip_load_from_dotenv=True,
            )
        )

    def filter_for_server_instance_configs(self, cfg: DictConfig) -> list[ServerInstanceConfig]:
        """Return the server instances of a configuration, in its order."""
        return list(server_instances(cfg))


class _Process:
    """The configuration that this process works under, once it is known."""

    cfg: ClassVar[DictConfig | None] = None


def get_global_config_dict(
    global_config_dict_parser_config: GlobalConfigDictParserConfig | None = None,
) -> DictConfig:
    """Return this process's configuration: the one set or handed down, else the parsed one, kept from then on.

    Raises:
        ConfigError: the configuration cannot be parsed.

    """
    if _Process.cfg is None:
        handed_down = os.environ.get(NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME)
        _Process.cfg = _from_text(handed_down) if handed_down else _parsed(global_config_dict_parser_config)
    return _Process.cfg


def maybe_get_global_config_dict() -> DictConfig | None:
    """Return this process's configuration where it has one, set or handed down; nothing is parsed.

    Raises:
        ConfigError: what was handed down is no YAML mapping.

    """
    known = _Process.cfg is not None or os.environ.get(NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME)
    return get_global_config_dict() if known else None


def set_global_config_dict(global_config_dict: DictConfig | Mapping[str, object]) -> DictConfig:
    """Make a given configuration this process's own, and return it.

    Raises:
        ConfigInterpolationError: text that opens an interpolation and does not close it.

    """
    _Process.cfg = _as_config(global_config_dict, "the given configuration")
    return _Process.cfg


def forget_global_config_dict() -> None:
    """Let the next `get_global_config_dict` find the configuration anew."""
    _Process.cfg = None


def get_first_server_config_dict(global_config_dict: DictConfig | Mapping[str, Any], instance_name: str) -> DictConfig:
    """Return the innermost mapping of an instance.

    Raises:
        ServerRefNotFoundError: no such instance; names the close ones.

    """
    if not isinstance(global_config_dict, DictConfig):
        global_config_dict = _as_config(global_config_dict, "the given configuration")
    return first_block(global_config_dict, instance_name)


def written_keys(config: GlobalConfigDictParserConfig) -> frozenset[str]:
    """Return the top-level keys of everything that is read but the command line.

    Raises:
        ConfigError: a file that cannot be read.

    """
    layers = _read(config)
    return frozenset(str(key) for source in (*layers.files, *layers.above) for key in source.tree)


def _parsed(config: GlobalConfigDictParserConfig | None) -> DictConfig:
    return GlobalConfigDictParser().parse(config)


def _from_text(text: str) -> DictConfig:
    try:
        loaded = OmegaConf.create(text)
    except (yaml.YAMLError, OmegaConfBaseException):
        loaded = None
    if not isinstance(loaded, DictConfig):
        raise ConfigError(f"{NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME} holds no YAML mapping; unset it to read files instead")
    return loaded


def _as_config(given: DictConfig | Mapping[str, object], label: str) -> DictConfig:
    return configuration(plain(given) if isinstance(given, DictConfig) else dict(given), label)


def _read(config: GlobalConfigDictParserConfig) -> _Layers:
    tokens = sys.argv[1:] if config.overrides is None and not config.skip_load_from_cli else config.overrides or []
    overrides = parse_overrides(tokens)
    above = tuple(source for source in (_dotenv(config), _initial(config)) if source is not None)
    top = apply_overrides(stacked(above), overrides, lenient=True)
    includes = IncludeWalk(top)
    asked_by = "the command line, env.yaml or the calling program"
    includes.visit(config_paths_in(top, asked_by), asked_by)
    return _Layers(tuple(includes.sources), above, overrides)


def _dotenv(config: GlobalConfigDictParserConfig) -> Source | None:
    if config.skip_load_from_dotenv:
        return None
    if config.dotenv_path is not None:
        path = require_read_path(config.dotenv_path, "environment file (dotenv_path)")
    else:
        path = resolve_read_path("env.yaml", Path.is_file)
    return Source(str(path), read_yaml(path)) if path.is_file() else None


def _initial(config: GlobalConfigDictParserConfig) -> Source | None:
    if config.initial_global_config_dict is None:
        return None
    cfg = _as_config(config.initial_global_config_dict, "the calling program's configuration")
    if plain(cfg).get(POLICY_MODEL) == _DUMMY_POLICY_MODEL:
        del cfg[POLICY_MODEL]
    return Source("the calling program's configuration", cfg)


def _with_dummy_model(tree: Tree, config: GlobalConfigDictParserConfig) -> Tree:
    """Put the dummy policy model in, where the program asked for it and the configuration has no policy model."""
    given = config.initial_global_config_dict
    asked = given is not None and plain(_as_config(given, "")).get(POLICY_MODEL) == _DUMMY_POLICY_MODEL
    return {**tree, POLICY_MODEL: _DUMMY_POLICY_MODEL} if asked and POLICY_MODEL not in tree else tree


def _check(tree: Tree, written: Tree, places: Places, *, with_agents: bool) -> None:
    check_almost_servers(tree, written, places)
    check_models(tree)
    check_references(tree, places, with_agents=with_agents)

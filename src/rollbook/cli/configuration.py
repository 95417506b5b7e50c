"""Flags, `env.yaml` and overrides → one resolved configuration.

Rules:
* A flag's value enters as a value, never as text to be parsed again; a free override is laid on top of it.
* Only flags that were given take part.
* A key that was typed and that nothing reads is told, with the nearest one that is.

Source: servers.md §1.2, §10.1.
"""

from collections.abc import Collection, Mapping
from typing import Final

import click
from omegaconf import DictConfig, OmegaConf

from rollbook.cli.overrides import checked_overrides
from rollbook.cli.selectors import config_paths_of
from rollbook.config.files import plain
from rollbook.config.overrides import parse_overrides
from rollbook.config.parser import GlobalConfigDictParser, GlobalConfigDictParserConfig, written_keys
from rollbook.config.roots import add_search_dirs
from rollbook.config.strays import stray_notes

CONFIG_KEYS: Final = (
    "allow_unsupported_pairing",
    "isolate",
    "nemo_gym_log_dir",
    "policy_api_key",
    "policy_base_url",
    "policy_model_name",
)
"""Keys that flags set and any verb that reads a configuration may have."""


def resolved_configuration(
    given: Mapping[str, object],
    *,
    settings: Mapping[str, object],
    verbose: bool = False,
    private_head: bool = False,
    with_agents: bool = True,
) -> DictConfig:
    """Return the configuration that the flags in `given` name, with `settings` between files and overrides.

    Without `with_agents`, the models that agents name need not be there.

    Raises:
        ConfigError: a configuration that cannot be run as it stands.
        click.UsageError: a selector or override that cannot be read.

    """
    add_search_dirs(texts(given.get("search_dir")))
    paths = config_paths_of(given)
    overrides = checked_overrides(texts(given.get("overrides")), paths)
    initial = given_values(given, CONFIG_KEYS) | dict(settings)
    initial |= {"config_paths": paths} if paths else {}
    initial |= {"verbose": True} if verbose else {}
    return GlobalConfigDictParser().parse(
        GlobalConfigDictParserConfig(
            initial_global_config_dict=OmegaConf.create(initial),
            overrides=overrides,
            private_head=private_head,
            with_agents=with_agents,
        )
    )


def notes_on_strays(given: Mapping[str, object], cfg: DictConfig, options: Collection[str]) -> tuple[str, ...]:
    """Return a note on each override in `given` that sets what neither `options` nor anything else in `cfg` reads."""

    def in_files() -> Collection[str]:
        paths = config_paths_of(given)
        initial = OmegaConf.create({"config_paths": paths} if paths else {})
        return written_keys(GlobalConfigDictParserConfig(initial_global_config_dict=initial, overrides=list(tokens)))

    tokens = texts(given.get("overrides"))
    return stray_notes(parse_overrides(tokens), plain(cfg), options, in_files) if tokens else ()


def refuse_isolation_of_others(given: Mapping[str, object]) -> None:
    """Refuse to isolate servers that somebody else serves.

    Raises:
        click.UsageError: both were asked for.

    """
    if given.get("no_serve") and given.get("isolate"):
        raise click.UsageError("--isolate and --isolate-all are about servers to start; --no-serve starts none.")


def given_values(given: Mapping[str, object], names: tuple[str, ...]) -> dict[str, object]:
    """Return those of `names` that were given on the command line."""
    return {name: given[name] for name in names if given.get(name) is not None}


def texts(value: object) -> tuple[str, ...]:
    """Return a repeatable flag's values."""
    return tuple(str(item) for item in value) if isinstance(value, tuple) else ()

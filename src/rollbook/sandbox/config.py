"""From the configuration's words about sandboxes to one provider and its arguments.

Rules:
* A value is a block, or the name of a block at the top level of the configuration; either names exactly one provider.
* What comes out is plain: no interpolation, no container of the configuration's library.
* `default_metadata` is no provider.

Source: servers.md §9.4.
"""

import sys
from collections.abc import Mapping
from typing import Any, Final

from rollbook.errors import SandboxConfigError

DEFAULT_METADATA_KEY: Final = "default_metadata"


def resolve_provider_config(
    value: object, named_configs: Mapping[str, object] | None = None
) -> dict[str, dict[str, object]]:
    """Return `{provider name: its arguments}`.

    Args:
        value: `{provider: {…}, default_metadata: {…}}`, or the name of such a block.
        named_configs: where names are looked up, as a rule the whole configuration.

    Raises:
        SandboxConfigError: no such block, no provider in it, or more than one.

    """
    block = _block_of(value, named_configs)
    providers = [name for name in block if name != DEFAULT_METADATA_KEY]
    if len(providers) != 1:
        raise SandboxConfigError(
            f"a sandbox block names exactly one provider; this one names {_listed(providers)}. "
            "Write for example {local: {}}"
        )
    arguments = block[providers[0]]
    if not isinstance(arguments, Mapping | None):
        raise SandboxConfigError(f"{providers[0]} is {type(arguments).__name__}; write a mapping, {{}} for none")
    return {providers[0]: {str(key): each for key, each in (arguments or {}).items()}}


def resolve_provider_metadata(value: object, named_configs: Mapping[str, object] | None = None) -> dict[str, str]:
    """Return the metadata that every sandbox of this block carries; values are text.

    Raises:
        SandboxConfigError: no such block, or metadata that are no mapping.

    """
    metadata = _block_of(value, named_configs).get(DEFAULT_METADATA_KEY)
    if not isinstance(metadata, Mapping | None):
        raise SandboxConfigError(f"{DEFAULT_METADATA_KEY} is {type(metadata).__name__}; write a mapping of texts")
    return {str(key): str(each) for key, each in (metadata or {}).items()}


def _block_of(value: object, named_configs: Mapping[str, object] | None) -> Mapping[str, Any]:
    found = _plain(_named(value, named_configs or {}) if isinstance(value, str) else value)
    if not isinstance(found, Mapping):
        raise SandboxConfigError(
            f"a sandbox provider is a block such as {{local: {{}}}}, or the name of one; this is {found!r}"
        )
    return {str(key): each for key, each in found.items()}


def _named(name: str, named_configs: Mapping[str, object]) -> object:
    if name in named_configs:
        return named_configs[name]
    raise SandboxConfigError(
        f"no block named {name!r} at the top level of the configuration. "
        f"Add one, for example\n  {name}:\n    local: {{}}"
    )


def _plain(value: object) -> object:
    """Return containers of the configuration's library as dicts and lists; whoever never loaded it has none."""
    library = sys.modules.get("omegaconf")
    if library is not None and library.OmegaConf.is_config(value):
        plain: object = library.OmegaConf.to_container(value, resolve=True)
        return plain
    return value


def _listed(names: list[str]) -> str:
    return ", ".join(sorted(names)) if names else "none"

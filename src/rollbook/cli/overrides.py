"""Tokens that go through to the configuration: `key=value`, `+key=value`, `++key=value`, `~key`.

Rules:
* Anything else that stands free is a usage error that says how an override is written.
* `config_paths` has one source: the flags, or a token, never both.

Source: servers.md §10.1, §1.2.
"""

import re
from collections.abc import Sequence
from typing import Final

import click

_OVERRIDE: Final = re.compile(r"(\+{0,2}[^\s=+~-][^=]*=.*|~[^\s=]+(=.*)?)", re.DOTALL)
_CONFIG_PATHS: Final = re.compile(r"\+{0,2}config_paths=")


def checked_overrides(tokens: Sequence[str], config_paths: Sequence[str]) -> list[str]:
    """Return `tokens` as they were given.

    Raises:
        click.UsageError: a token that is no override, or a second source of `config_paths`.

    """
    for token in tokens:
        if not _OVERRIDE.fullmatch(token):
            raise click.UsageError(
                f"unexpected argument {token!r}; an override is written key=value, +key=value, ++key=value or ~key."
            )
        if config_paths and _CONFIG_PATHS.match(token):
            raise click.UsageError(
                f"{token!r} would replace the files named by flags ({', '.join(config_paths)}); "
                "name its files with --config instead."
            )
    return list(tokens)

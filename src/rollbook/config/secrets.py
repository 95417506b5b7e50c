"""What a configuration looks like when it is shown: secrets replaced by `****`.

Rules:
* A key whose name holds `token`, `key`, `header`, `secret`, `password` or `credential` hides its value, whatever it is.
* User name and password of a URL are hidden wherever the URL stands.
* A message shows blocks as written: an interpolation of the environment stays an interpolation.

Source: servers.md §1.8.
"""

import re
from collections.abc import Mapping
from typing import Final

import yaml
from omegaconf import DictConfig

from rollbook.config.missing import resolved

MASK: Final = "****"
_SECRET_WORDS: Final = ("token", "key", "header", "secret", "password", "credential")
_USER_OF_URL: Final = re.compile(r"(?<=//)[^\s/?#]*@")


def is_secret(key: object) -> bool:
    """Tell whether a key's value is not to be shown."""
    name = str(key).lower()
    return any(word in name for word in _SECRET_WORDS)


def masked_urls(text: str, mask: str = f"{MASK}@") -> str:
    """Return `text` with user name and password of every URL in it, and the `@` after them, replaced by `mask`."""
    return _USER_OF_URL.sub(mask, text)


def masked(mapping: Mapping[str, object]) -> dict[str, object]:
    """Return a copy of `mapping`, at every depth without values of secret keys and without users of URLs."""
    return {key: MASK if is_secret(key) else _masked_value(value) for key, value in mapping.items()}


def masked_yaml(cfg: DictConfig) -> str:
    """Return the resolved configuration as YAML, secrets masked.

    Raises:
        ConfigInterpolationError: an interpolation that points at nothing.

    """
    return as_yaml(masked(resolved(cfg)))


def as_yaml(mapping: Mapping[str, object]) -> str:
    """Return a mapping as YAML text, keys in their own order."""
    return str(yaml.safe_dump(dict(mapping), sort_keys=False, allow_unicode=True))


def _masked_value(value: object) -> object:
    if isinstance(value, Mapping):
        return masked(value)
    if isinstance(value, str):
        return masked_urls(value)
    return [_masked_value(item) for item in value] if isinstance(value, list) else value

"""The token of the Hugging Face hub.

Rules:
* The configuration wins over the environment; nothing is parsed to find out.

Source: servers.md §1.7, §8.9.
"""

import os
from typing import Final

from rollbook.config.key_names import HF_TOKEN_KEY_NAME
from rollbook.config.parser import maybe_get_global_config_dict

_VARIABLES: Final = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def get_hf_token() -> str | None:
    """Return `hf_token` of this process's configuration, else the hub's own environment variable, else None.

    Raises:
        ConfigError: what the parent process handed down is no YAML mapping.

    """
    configuration = maybe_get_global_config_dict()
    given = None if configuration is None else configuration.get(HF_TOKEN_KEY_NAME)
    return given or next((token for variable in _VARIABLES if (token := os.environ.get(variable))), None)

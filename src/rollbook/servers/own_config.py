"""The configuration of this process: the one it was started with, or the one its command line gives.

Rules:
* What the launcher put into the environment is taken as it is: no parsing of options, no merging, no validation.

Source: servers.md §1.2.
"""

from omegaconf import DictConfig


def own_global_config() -> DictConfig:
    """Return this process's resolved configuration."""
    from rollbook.config.parser import get_global_config_dict  # noqa: PLC0415  parsing is only for who needs it

    return get_global_config_dict()

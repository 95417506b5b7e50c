"""The base of environments that are stepped, by its public names.

Rules:
* Environments import from here: `from resources_servers.gymnasium import GymnasiumServer`.

Source: servers.md §6.2.
"""

from resources_servers.gymnasium.app import (
    EnvResetRequest,
    EnvResetResponse,
    EnvStepRequest,
    EnvStepResponse,
    GymnasiumServer,
    GymnasiumServerConfig,
    Observed,
    Stepped,
    extract_text,
    tool_output,
)
from resources_servers.gymnasium.seeds import episode_seed

__all__ = [
    "EnvResetRequest",
    "EnvResetResponse",
    "EnvStepRequest",
    "EnvStepResponse",
    "GymnasiumServer",
    "GymnasiumServerConfig",
    "Observed",
    "Stepped",
    "episode_seed",
    "extract_text",
    "tool_output",
]

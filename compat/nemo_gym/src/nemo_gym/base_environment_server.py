"""What an environment server derives from."""

from rollbook import (
    BaseEnvironmentServer as BaseEnvironmentServer,
    BaseEnvironmentServerConfig as BaseEnvironmentServerConfig,
    CleanupContext as CleanupContext,
    CleanupHandle as CleanupHandle,
    HandledEpisodeError as HandledEpisodeError,
)

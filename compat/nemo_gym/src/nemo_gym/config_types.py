"""The typed parts of a configuration."""

from omegaconf import OmegaConf as OmegaConf
from rollbook import (
    ROLLOUT_PATH_PREFIX as ROLLOUT_PATH_PREFIX,
    TOKEN_CAPTURE_PATH_SEGMENT as TOKEN_CAPTURE_PATH_SEGMENT,
    AgentServerRef as AgentServerRef,
    AggregateMetrics as AggregateMetrics,
    AggregateMetricsRequest as AggregateMetricsRequest,
    BaseNeMoGymCLIConfig as BaseNeMoGymCLIConfig,
    BaseRunServerConfig as BaseRunServerConfig,
    BaseRunServerInstanceConfig as BaseRunServerInstanceConfig,
    BaseServerConfig as BaseServerConfig,
    BenchmarkDatasetConfig as BenchmarkDatasetConfig,
    ConfigError as ConfigError,
    ConfigPathNotFoundError as ConfigPathNotFoundError,
    DatasetConfig as DatasetConfig,
    Domain as Domain,
    EnvironmentServerRef as EnvironmentServerRef,
    ModelServerRef as ModelServerRef,
    ResourcesServerRef as ResourcesServerRef,
)

"""What a resources server derives from, and the bodies of its routes."""

from rollbook import (
    AggregateMetrics as AggregateMetrics,
    AggregateMetricsRequest as AggregateMetricsRequest,
    BaseMultiRewardVerifyResponse as BaseMultiRewardVerifyResponse,
    BaseResourcesServerConfig as BaseResourcesServerConfig,
    BaseRunRequest as BaseRunRequest,
    BaseSeedSessionRequest as BaseSeedSessionRequest,
    BaseSeedSessionResponse as BaseSeedSessionResponse,
    BaseVerifyRequest as BaseVerifyRequest,
    BaseVerifyResponse as BaseVerifyResponse,
    MCPServerMetadata as MCPServerMetadata,
    NeMoGymResponse as NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming as NeMoGymResponseCreateParamsNonStreaming,
    ResourcesCloseSessionRequest as ResourcesCloseSessionRequest,
    ResourcesCloseSessionResponse as ResourcesCloseSessionResponse,
    ResourcesSeedSessionRequest as ResourcesSeedSessionRequest,
    ResourcesSeedSessionResponse as ResourcesSeedSessionResponse,
    ResourcesVerifyRequest as ResourcesVerifyRequest,
    ReverifyMode as ReverifyMode,
    SimpleResourcesServer as SimpleResourcesServer,
)

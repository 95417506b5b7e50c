"""What an agent derives from, and the bodies of its routes."""

from fastapi import Body as Body
from rollbook import (
    AgentCloseSessionRequest as AgentCloseSessionRequest,
    AgentCloseSessionResponse as AgentCloseSessionResponse,
    AgentSeedSessionRequest as AgentSeedSessionRequest,
    AgentSeedSessionResponse as AgentSeedSessionResponse,
    AgentSessionSetupError as AgentSessionSetupError,
    AgentSessionState as AgentSessionState,
    AggregateMetrics as AggregateMetrics,
    AggregateMetricsRequest as AggregateMetricsRequest,
    BaseResponsesAPIAgentConfig as BaseResponsesAPIAgentConfig,
    BaseRunRequest as BaseRunRequest,
    BaseVerifyResponse as BaseVerifyResponse,
    NeMoGymResponse as NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming as NeMoGymResponseCreateParamsNonStreaming,
    SimpleResponsesAPIAgent as SimpleResponsesAPIAgent,
)

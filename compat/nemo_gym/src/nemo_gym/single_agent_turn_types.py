"""One turn of one agent, as an episode."""

from rollbook import (
    SingleAgentTurnFailure as SingleAgentTurnFailure,
    SingleAgentTurnRequest as SingleAgentTurnRequest,
    SingleAgentTurnResponse as SingleAgentTurnResponse,
    SingleAgentTurnResult as SingleAgentTurnResult,
    SingleAgentTurnTaskInput as SingleAgentTurnTaskInput,
)

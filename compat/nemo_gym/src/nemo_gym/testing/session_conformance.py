"""Whether an app keeps the contract of typed sessions."""

from rollbook import (
    SessionContractError as SessionContractError,
    check_resources_session_contract as check_resources_session_contract,
)

"""What agents need whose harness runs inside of a sandbox."""

from rollbook import (
    get_server_url as get_server_url,
    restricted_network_policy as restricted_network_policy,
    sandbox_server_url as sandbox_server_url,
    seed_mcp_servers as seed_mcp_servers,
    verify_agent_response as verify_agent_response,
)

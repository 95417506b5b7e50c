"""The token by which an MCP call names its session: signed, so that no client can name another's.

Rules:
* The signing secret is that of the server's session cookies; a token of one server opens nothing on another.
* A token may name the tools that its session is allowed; without a list all are.

Source: servers.md §8.6.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from itsdangerous import BadData, URLSafeSerializer

NEMO_GYM_MCP_METADATA_KEY: Final = "mcp"
NEMO_GYM_MCP_SESSION_TOKEN_HEADER: Final = "X-NeMo-Gym-Session-Token"  # noqa: S105  the name of a header
TOKEN_HEADER: Final = NEMO_GYM_MCP_SESSION_TOKEN_HEADER
_SALT: Final = "nemo-gym-mcp-session-token"


class SessionGrant(msgspec.Struct, frozen=True):
    """What a token says: a session, and the tools that it is allowed; None: all."""

    session_id: str
    tools: frozenset[str] | None = None

    def allows(self, tool: str) -> bool:
        """Whether the session may call a tool."""
        return self.tools is None or tool in self.tools


def sealed(secret: str, session_id: str, tools: Sequence[str] | None) -> str:
    """Return the token of a session."""
    listed = None if tools is None else list(tools)
    token = URLSafeSerializer(secret, salt=_SALT).dumps({"sid": session_id, "tools": listed})
    return token if isinstance(token, str) else token.decode()


def opened(secret: str, token: str | None) -> SessionGrant | None:
    """Return what a token says; None without one, or when this server did not seal it."""
    if not token:
        return None
    try:
        said = URLSafeSerializer(secret, salt=_SALT).loads(token)
    except BadData:
        return None
    tools = said.get("tools")
    return SessionGrant(said["sid"], None if tools is None else frozenset(tools))

"""The token by which an MCP call names its session: signed, so that no client can write one.

Rules:
* The signing secret is the name of the server's session cookies, which anybody knows, and a random key of its process:
  a token of one server opens nothing on another, nor on the same one started anew.
* A token may name the tools that its session is allowed; without a list all are.
* What a token says can be read by whoever holds it: it is signed, not hidden.

Source: servers.md §8.6.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from itsdangerous import BadData, URLSafeSerializer

from rollbook.servers.mcp.seal_key import seal_key

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


def sealed(session_key: str, session_id: str, tools: Sequence[str] | None) -> str:
    """Return the token of a session; `session_key` is the name of the server's session cookies."""
    listed = None if tools is None else list(tools)
    token = _serializer(session_key).dumps({"sid": session_id, "tools": listed})
    return token if isinstance(token, str) else token.decode()


def opened(session_key: str, token: str | None) -> SessionGrant | None:
    """Return what a token says; None without one, or when this server did not seal it."""
    if not token:
        return None
    try:
        said = _serializer(session_key).loads(token)
    except BadData:
        return None
    tools = said.get("tools")
    return SessionGrant(said["sid"], None if tools is None else frozenset(tools))


def _serializer(session_key: str) -> URLSafeSerializer:
    return URLSafeSerializer(f"{session_key}___{seal_key()}", salt=_SALT)

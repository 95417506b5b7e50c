"""A resources server's tools over MCP."""

from rollbook import (
    NEMO_GYM_MCP_SESSION_TOKEN_HEADER as NEMO_GYM_MCP_SESSION_TOKEN_HEADER,
    TOKEN_HEADER as TOKEN_HEADER,
    maybe_auto_expose as maybe_auto_expose,
)

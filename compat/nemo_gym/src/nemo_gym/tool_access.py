"""How an agent reaches its tools."""

from rollbook import (
    DirectHTTPToolAccess as DirectHTTPToolAccess,
    MCPConnection as MCPConnection,
    MCPStreamableHTTPConnection as MCPStreamableHTTPConnection,
    MCPToolAccess as MCPToolAccess,
    SandboxAccess as SandboxAccess,
    ToolAccess as ToolAccess,
)

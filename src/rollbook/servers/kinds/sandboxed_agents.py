"""What agents need whose harness runs inside of a sandbox: addresses, tools and a verdict from outside of it.

Rules:
* An address of this machine's own loopback means nothing inside of a sandbox; who needs a reachable one is told so.
* A tool server is used with the token of this very session, or not at all.
* An attempt whose harness failed is scored as if it had answered nothing; what it did answer stays in its row.

Source: servers.md §8.6, §13.3; the rest is what the agents that call these functions expect of them.
"""

import ipaddress
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from pydantic import BaseModel

from rollbook.config.parser import get_global_config_dict
from rollbook.config.types import ResourcesServerRef
from rollbook.records.failure_kinds import AGENT_RUN_ERROR_FAILURE_CLASS
from rollbook.servers.client import ServerClient, get_server_url
from rollbook.servers.http.http_client import get_response_json, raise_for_status
from rollbook.servers.openai.openai_response import NeMoGymResponse

PROVIDER_WITH_POLICIES: Final = "opensandbox"
LOCAL_NAMES: Final = {"", "localhost", "localhost.localdomain"}


def sandbox_server_url(server_name: str, *, require_reachable: bool = False) -> str:
    """Return `http://host:port` of a server for programs inside of a sandbox.

    Raises:
        ValueError: with `require_reachable`, an address that only this machine can reach.

    """
    url = get_server_url(get_global_config_dict(), server_name)
    if require_reachable:
        _reachable_host(url)
    return url


def restricted_network_policy(provider_name: str, urls: Iterable[str]) -> dict[str, Any]:
    """Return a policy that lets a sandbox reach the hosts of `urls`, in their order, and nothing else.

    Raises:
        ValueError: a provider that is not known to keep such a policy, or a host that no sandbox can reach.

    """
    if provider_name != PROVIDER_WITH_POLICIES:
        raise ValueError(
            f"the sandbox provider {provider_name!r} cannot restrict the network to some hosts; OpenSandbox can. "
            "Use it, or network_access: inherit"
        )
    hosts = dict.fromkeys(_reachable_host(url) for url in urls)
    return {"defaultAction": "deny", "egress": [{"action": "allow", "target": host} for host in hosts]}


async def seed_mcp_servers(
    server_client: ServerClient,
    tool_servers: Sequence[ResourcesServerRef],
    body: BaseModel,
    cookies: Mapping[str, str],
    *,
    timeout_s: float,
    require_reachable: bool = False,
) -> dict[str, dict[str, Any]]:
    """Open a session on every tool server; return `{name: {url, headers, enabled, timeout}}`, the timeout in ms.

    Raises:
        InnerServerError: a server refused the session.
        ValueError: a server offers no tools over MCP, or offers them to anybody; or is out of a sandbox's reach.

    """
    entries = {}
    for server in tool_servers:
        seeded = await server_client.post(
            server_name=server.name, url_path="/seed_session", json=body.model_dump(mode="json"), cookies=cookies
        )
        await raise_for_status(seeded)
        mcp = (await get_response_json(seeded)).get("mcp") or {}
        if not mcp.get("headers"):
            raise ValueError(
                f"{server.name} offers no authenticated MCP tools; set expose_tools_over_mcp: true in its block"
            )
        url = sandbox_server_url(server.name, require_reachable=require_reachable)
        entries[server.name] = {
            "url": url.rstrip("/") + mcp.get("url_path", "/mcp"),
            "headers": dict(mcp["headers"]),
            "enabled": True,
            "timeout": int(timeout_s * 1000),
        }
    return entries


async def verify_agent_response(
    server_client: ServerClient,
    resources_server: ResourcesServerRef,
    body: BaseModel,
    response: NeMoGymResponse,
    cookies: Mapping[str, str],
    *,
    force_zero_reward: bool = False,
) -> dict[str, Any]:
    """Return the row of `body` with `response`, as its resources server scores it.

    With `force_zero_reward` the server sees a response without output, so that every part of its score is the one for
    nothing; the row carries the response itself, `reward` 0 and `failure_kind` "agent_run_error".

    Raises:
        InnerServerError: the server could not score it.

    """
    given = response.model_dump(mode="json")
    seen = {**given, "output": []} if force_zero_reward else given
    verified = await server_client.post(
        server_name=resources_server.name,
        url_path="/verify",
        json={**body.model_dump(mode="json"), "response": seen},
        cookies=cookies,
    )
    await raise_for_status(verified)
    row: dict[str, Any] = await get_response_json(verified)
    if force_zero_reward:
        row |= {"response": given, "reward": 0.0, "failure_kind": AGENT_RUN_ERROR_FAILURE_CLASS}
    return row


def _reachable_host(url: str) -> str:
    host = urlsplit(url).hostname or ""
    if host in LOCAL_NAMES or _only_here(host):
        raise ValueError(
            f"{url} is not reachable from inside of a sandbox; give the server a host that other machines know"
        )
    return host


def _only_here(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified

"""A relay in front of an agent: what comes in goes on as it is, and what comes back goes out as it is.

Rules:
* Body, headers, cookies and status are the two ends' own; nothing is read, and nothing is added.
* A reply is passed on while it arrives.
* An agent that cannot be reached is a gateway's failure: 502, or 504 when it took too long.

Source: servers.md §3.10.
"""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final

from aiohttp import ClientConnectionError, ClientResponse, ServerTimeoutError
from fastapi import FastAPI, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from rollbook import (
    AgentServerRef,
    BaseRunServerInstanceConfig,
    SimpleServer,
    apply_rollout_prefix,
    current_rollout_id,
)

BAD_GATEWAY: Final = 502
GATEWAY_TIMEOUT: Final = 504
PATHS: Final = ("/run", "/aggregate_metrics")
HOP_BY_HOP: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
        b"host",
        b"content-length",
        b"accept-encoding",
        b"content-encoding",
        b"server",
        b"date",
    }
)


class LegacyAgentConfig(BaseRunServerInstanceConfig):
    """The agent behind this server."""

    agent_server: AgentServerRef


class LegacyAgentServer(SimpleServer):
    """An environment server for an agent that runs its episodes itself."""

    config: LegacyAgentConfig

    def setup_webserver(self) -> FastAPI:
        """Return the application with the two relayed routes."""
        app = FastAPI()
        app.post("/run")(self.run)
        app.post("/aggregate_metrics")(self.aggregate_metrics)
        return app

    def relayed_paths(self) -> Mapping[str, str]:
        """Return both routes; a subclass may do more than relay."""
        return dict.fromkeys(PATHS, self.config.agent_server.name) if type(self) is LegacyAgentServer else {}

    async def run(self, request: Request) -> Response:
        """Relay an episode."""
        return await self._relayed(request, "/run")

    async def aggregate_metrics(self, request: Request) -> Response:
        """Relay an aggregation."""
        return await self._relayed(request, "/aggregate_metrics")

    async def _relayed(self, request: Request, url_path: str) -> Response:
        agent = self.config.agent_server.name
        try:
            reply = await self.server_client.post(
                server_name=agent,
                url_path=apply_rollout_prefix(url_path, current_rollout_id()),
                data=await request.body(),
                headers={
                    name.decode("latin-1"): value.decode("latin-1")
                    for name, value in passed_on(request.scope["headers"])
                },
                allow_redirects=False,
                _streamed=True,
            )
        except (ClientConnectionError, TimeoutError) as error:
            late = isinstance(error, (TimeoutError, ServerTimeoutError))
            status = GATEWAY_TIMEOUT if late else BAD_GATEWAY
            return JSONResponse(f"{agent!r} did not answer {url_path}: {error!r}", status)
        relayed = await as_it_arrives(reply)
        relayed.raw_headers = passed_on(reply.raw_headers)
        return relayed


class Relay(StreamingResponse):
    """A reply that is sent as it arrives; every server's outermost layer ends it when the client has gone."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, without a task of its own that waits for the client to go."""
        del scope, receive
        await self.stream_response(send)


async def as_it_arrives(reply: ClientResponse) -> Response:
    """Return `reply` for passing on; one of this process is whole, and so is one that has arrived with its headers."""
    if type(reply) is ClientResponse and not reply.content.is_eof():
        return Relay(chunks(reply), reply.status)
    return Response(await reply.read(), reply.status)


def passed_on(headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Return the headers that are not about one connection alone, names in lower case."""
    return [(key, value) for name, value in headers if (key := name.lower()) not in HOP_BY_HOP]


async def chunks(reply: ClientResponse) -> AsyncIterator[bytes]:
    """Yield a reply's body as it arrives, and give its connection back."""
    try:
        async for chunk in reply.content.iter_any():
            yield chunk
    finally:
        reply.close()


if __name__ == "__main__":
    LegacyAgentServer.run_webserver()

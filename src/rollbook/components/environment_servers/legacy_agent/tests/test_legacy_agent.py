import pytest
from aiohttp import ClientOSError, ServerTimeoutError
from fastapi import FastAPI, Request
from starlette.responses import Response, StreamingResponse

from environment_servers.legacy_agent.app import LegacyAgentConfig, LegacyAgentServer
from rollbook import request as send
from unit.servers_core.stand_ins import behind_a_socket
from unit.servers_kinds.playground import AGENTS, ENVIRONMENTS, Entry, playing

ODD_BODY = b'{ "responses_create_params" : {"input": "caf\\u00e9"}, "reward": 1.50 }'
AGENT_REF = {"type": "responses_api_agents", "name": "agent"}
CONFIG = LegacyAgentConfig(host="h", port=1, entrypoint="app.py", name="env", agent_server=AGENT_REF)


class Echo:
    """An agent that answers with the bytes that it was sent, and keeps how it was asked."""

    def __init__(self, status=200) -> None:
        self.status = status
        self.asked = []

    def app(self, _client) -> FastAPI:
        app = FastAPI()

        @app.post("/{path:path}")
        async def answer(path: str, request: Request) -> Response:
            body = await request.body()
            self.asked.append((path, body, dict(request.headers), dict(request.cookies)))
            reply = Response(body, self.status, {"x-own": "kept"}, "application/json")
            reply.set_cookie("agent", "a")
            reply.set_cookie("tools", "b")
            return reply

        return app

    def playing(self):
        def build(client):
            return LegacyAgentServer(config=CONFIG, server_client=client)

        return playing({"env": Entry(ENVIRONMENTS, build), "agent": Entry(AGENTS, self.app)})


@pytest.mark.parametrize("status", [200, 422, 429, 500])
@pytest.mark.parametrize("path", ["/run", "/aggregate_metrics"])
async def test_bytes_headers_cookies_and_status_pass_through_both_ways(path, status):
    agent = Echo(status)
    headers = {"content-type": "application/json", "x-trace": "t1", "te": "trailers"}
    async with agent.playing() as playground:
        reply = await playground.client.post("env", path, data=ODD_BODY, headers=headers, cookies={"c": "1"})
    assert (reply.status, await reply.read()) == (status, ODD_BODY)
    assert reply.headers["x-own"] == "kept"
    assert {name: morsel.value for name, morsel in reply.cookies.items()} == {"agent": "a", "tools": "b"}
    (asked_path, body, asked_headers, cookies) = agent.asked[0]
    assert ("/" + asked_path, body, cookies) == (path, ODD_BODY, {"c": "1"})
    assert asked_headers["x-trace"] == "t1"
    assert "te" not in asked_headers


async def test_a_rollouts_prefix_goes_on_to_the_agent():
    agent = Echo()
    async with agent.playing() as playground:
        await playground.client.post("env", "/ng-rollout/3-0/run", data=ODD_BODY)
    assert agent.asked[0][0] == "ng-rollout/3-0/run"


async def test_a_reply_is_passed_on_over_sockets_as_well():
    agent = Echo(500)
    async with agent.playing() as playground:
        server = LegacyAgentServer(config=CONFIG, server_client=playground.client)
        async with behind_a_socket(server.build_app()) as url:
            reply = await send("POST", f"{url}/run", data=ODD_BODY)
            assert (reply.status, await reply.read()) == (500, ODD_BODY)


async def test_a_compressed_reply_arrives_whole():
    import gzip  # noqa: PLC0415  only this test compresses

    async def squeezed(request: Request) -> Response:
        return StreamingResponse(iter([gzip.compress(ODD_BODY)]), 200, {"content-encoding": "gzip"})

    agent = FastAPI()
    agent.post("/run")(squeezed)
    async with behind_a_socket(agent) as agent_url:

        class Through:
            """A client whose only peer listens on a socket."""

            async def post(self, server_name, url_path, **options):
                return await send("POST", agent_url + url_path, **options)

        server = LegacyAgentServer.model_construct(config=CONFIG, server_client=Through())
        async with behind_a_socket(server.build_app()) as url:
            reply = await send("POST", f"{url}/run", data=b"{}")
            assert await reply.read() == ODD_BODY


@pytest.mark.parametrize(
    ("error", "status"), [(ClientOSError("reset"), 502), (TimeoutError(), 504), (ServerTimeoutError(), 504)]
)
async def test_an_agent_that_does_not_answer_is_a_gateways_failure(error, status):
    class Silent:
        async def post(self, server_name, url_path, **options):
            raise error

    server = LegacyAgentServer.model_construct(config=CONFIG, server_client=Silent())
    async with behind_a_socket(server.build_app()) as url:
        reply = await send("POST", f"{url}/run", data=b"{}")
        assert reply.status == status
        assert b"'agent' did not answer /run" in await reply.read()


def test_both_routes_are_told_to_be_relayed_and_those_of_a_subclass_are_not():
    class Counting(LegacyAgentServer):
        """A relay that does more."""

    both = dict.fromkeys(("/run", "/aggregate_metrics"), CONFIG.agent_server.name)
    assert LegacyAgentServer.model_construct(config=CONFIG).relayed_paths() == both
    assert Counting.model_construct(config=CONFIG).relayed_paths() == {}

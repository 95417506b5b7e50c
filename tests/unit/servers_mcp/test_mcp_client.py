"""An MCP client of the `mcp` package drives a server's tools, here and in a process of its own."""

from contextlib import asynccontextmanager

import httpx
import pytest

from rollbook.servers.client import get_server_url
from rollbook.servers.serving.embedded import EmbeddedDeployment
from rollbook.servers.serving.processes import ProcessDeployment
from unit.servers_core.stand_ins import behind_a_socket, configuration, write_component
from unit.servers_mcp.weather import seeded, verify_body, weather

mcp = pytest.importorskip("mcp")
streamable = pytest.importorskip("mcp.client.streamable_http")
TOKEN_HEADER = "X-NeMo-Gym-Session-Token"

WEATHER = """
    from fastapi import Request
    from pydantic import BaseModel, PrivateAttr
    from rollbook import SESSION_ID_KEY, BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer


    class City(BaseModel):
        city: str


    class Answer(BaseVerifyResponse):
        seen: list[str]


    class Weather(SimpleResourcesServer):
        _asked: dict = PrivateAttr(default_factory=dict)

        def setup_webserver(self):
            app = super().setup_webserver()
            app.post("/get_weather")(self.get_weather)
            return app

        async def get_weather(self, request: Request, body: City) -> dict:
            self._asked.setdefault(request.session[SESSION_ID_KEY], []).append(body.city)
            return {"weather": f"sunny in {body.city}"}

        async def verify(self, request: Request, body: BaseVerifyRequest) -> Answer:
            seen = self._asked.get(request.session[SESSION_ID_KEY], [])
            return Answer(**body.model_dump(), reward=float(len(seen)), seen=seen)


    if __name__ == "__main__":
        Weather.run_webserver()
"""


@asynccontextmanager
async def mcp_session(url, token=None):
    """Yield a client session of the `mcp` package, initialised."""
    headers = {TOKEN_HEADER: token} if token else None
    async with (
        streamable.create_mcp_http_client(headers=headers) as client,
        streamable.streamable_http_client(f"{url}/mcp", http_client=client) as (read, write, *_),
        mcp.ClientSession(read, write) as session,
    ):
        await session.initialize()
        yield session


async def test_a_client_lists_and_calls_and_the_verifier_sees_it():
    async with behind_a_socket(weather().build_app()) as url, httpx.AsyncClient(base_url=url) as plain:
        async with mcp_session(url, await seeded(plain)) as session:
            tools = {tool.name for tool in (await session.list_tools()).tools}
            assert tools == {"closed", "forget", "get_weather", "note"}
            result = await session.call_tool("get_weather", {"city": "Oslo"})
            assert result.structured_content == {"city": "Oslo", "weather": "sunny"}
            refused = await session.call_tool("closed", {})
            assert refused.is_error
            assert refused.content[0].text == "the office is closed"
        assert (await plain.post("/verify", json=verify_body())).json()["seen"] == ["Oslo"]


async def test_a_client_without_a_token_may_list_and_is_refused_when_it_calls():
    async with behind_a_socket(weather().build_app()) as url, mcp_session(url) as session:
        assert len((await session.list_tools()).tools) == 4
        assert (await session.call_tool("get_weather", {"city": "Oslo"})).is_error


@pytest.mark.parametrize("deployment", ["embedded", "processes"])
async def test_a_deployed_server_serves_its_tools_over_mcp(root, tmp_path, deployment):
    write_component(root, "weather", WEATHER)
    block = {"expose_tools_over_mcp": True}
    config = configuration({"weather": block})
    served = EmbeddedDeployment(config) if deployment == "embedded" else ProcessDeployment(config, tmp_path / "logs")
    async with served:
        url = get_server_url(config, "weather")
        async with httpx.AsyncClient(base_url=url) as plain:
            async with mcp_session(url, await seeded(plain)) as session:
                result = await session.call_tool("get_weather", {"city": "Oslo"})
                assert result.structured_content == {"weather": "sunny in Oslo"}
            assert (await plain.post("/verify", json=verify_body())).json()["reward"] == 1.0

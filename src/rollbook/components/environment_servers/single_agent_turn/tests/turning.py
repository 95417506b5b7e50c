"""A single agent turn between scripted servers, or with the real agent and a real environment."""

from fastapi import FastAPI, Request
from pydantic import ConfigDict

from environment_servers.single_agent_turn.app import SingleAgentTurnConfig, SingleAgentTurnServer
from responses_api_agents.simple_agent.app import SimpleAgent, SimpleAgentConfig
from rollbook import (
    SESSION_ID_KEY,
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    JudgeError,
    ResourcesSeedSessionRequest,
    SimpleResourcesServer,
)
from unit.servers_kinds.playground import (
    AGENTS,
    ENVIRONMENTS,
    MODELS,
    RESOURCES,
    Entry,
    Scripted,
    call,
    message,
    playing,
    reply_with,
)

FRAME = {"host": "h", "port": 1, "entrypoint": "app.py"}
CONFIG = {
    **FRAME,
    "name": "env",
    "cleanup_timeout_seconds": 5,
    "resources_server": {"type": "resources_servers", "name": "weather"},
    "agent_server": {"type": "responses_api_agents", "name": "agent"},
}
ASKED = {"input": "Weather in Oslo?"}
ANSWER = "/ng-rollout/7-2/v1/responses"


def echoes(key):
    return lambda body: {key: body[key]}


def verifies(body):
    return {**body, "reward": 1.0, "_ng_rollout_index": 2}


class Turns:
    """A turn between a scripted agent and a scripted environment, whose replies a test changes."""

    def __init__(self, server_class=SingleAgentTurnServer, agent_block=None, **config) -> None:
        self.resources = Scripted(
            {
                "/seed_session": [echoes("resources_session_id")],
                "/verify": [verifies],
                "/close_session": [echoes("resources_session_id")],
            },
            sets_cookie="weather",
        )
        self.agent = Scripted(
            {
                "/v1/agent_sessions": [echoes("agent_session_id")],
                ANSWER: [reply_with(message("Rain."))],
                "/v1/agent_sessions/close": [echoes("agent_session_id")],
            },
            sets_cookie="agent",
        )
        self.server_class = server_class
        self.agent_block = agent_block or {}
        self.config = config

    def build(self, client):
        return self.server_class(config=SingleAgentTurnConfig(**{**CONFIG, **self.config}), server_client=client)

    async def run(self, body, path="/run"):
        servers = {
            "env": Entry(ENVIRONMENTS, self.build),
            "agent": Entry(AGENTS, self.agent.app, self.agent_block),
            "weather": Entry(RESOURCES, self.resources.app),
        }
        async with playing(servers) as playground:
            return await playground.post("env", path, body)


class WeatherVerifyRequest(BaseVerifyRequest):
    model_config = ConfigDict(extra="allow")

    expected_city: str


class WeatherVerifyResponse(BaseVerifyResponse):
    asked_cities: list[str]


class Weather(SimpleResourcesServer):
    """Remembers, by cookie session, which cities its tool was asked for; the last verdict is about them."""

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/get_weather")(self.get_weather)
        return app

    async def seed_session(self, request: Request, body: ResourcesSeedSessionRequest):
        request.session["cities"] = []
        return await super().seed_session(body)

    async def get_weather(self, request: Request, body: dict[str, str]) -> dict[str, str]:
        request.session["cities"] = [*request.session["cities"], body["city"]]
        return {"weather": "rain", "session": request.session[SESSION_ID_KEY]}

    async def verify(self, request: Request, body: WeatherVerifyRequest) -> WeatherVerifyResponse:
        if body.expected_city == "judge":
            raise JudgeError("no judge")
        cities = request.session["cities"]
        reward = float(cities == [body.expected_city])
        return WeatherVerifyResponse(**body.model_dump(), reward=reward, asked_cities=cities)


def real_servers(server_class=SingleAgentTurnServer, city="Oslo"):
    """Return the real agent and a real environment around a scripted model."""

    def build_env(client):
        return server_class(config=SingleAgentTurnConfig(**CONFIG), server_client=client)

    def build_agent(client):
        model = {"type": "responses_api_models", "name": "model"}
        return SimpleAgent(config=SimpleAgentConfig(**FRAME, name="agent", model_server=model), server_client=client)

    def build_weather(client):
        return Weather(config=BaseResourcesServerConfig(**FRAME, name="weather"), server_client=client)

    asks = reply_with(call("get_weather", f'{{"city":"{city}"}}'))
    model = Scripted({"/v1/responses": [asks, reply_with(message("Rain."))]})
    return {
        "env": Entry(ENVIRONMENTS, build_env),
        "agent": Entry(AGENTS, build_agent),
        "weather": Entry(RESOURCES, build_weather),
        "model": Entry(MODELS, model.app),
    }

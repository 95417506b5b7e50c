import httpx
import pytest
from fastapi import Request
from omegaconf import OmegaConf

from rollbook import (
    BaseResourcesServerConfig,
    BaseResponsesAPIModelConfig,
    BaseServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    ServerClient,
    SimpleResourcesServer,
    SimpleResponsesAPIModel,
)
from rollbook.servers.correlation import RolloutContextMiddleware, current_rollout_id, rollout_context
from rollbook.servers.kinds.agent_server import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from rollbook.servers.openai.openai_response import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from unit.servers_kinds.playground import AGENTS, Entry, message, playing, reply_with

PATH = "/ng-rollout/7-2-a1/v1/responses"


class Watched(SimpleResponsesAPIAgent):
    """Keeps the paths that a middleware of its own saw, and answers with the rollout."""

    seen: list[str]

    def setup_webserver(self):
        app = super().setup_webserver()
        app.middleware("http")(self.note)
        return app

    async def note(self, request: Request, call_next):
        self.seen.append(request.scope["path"])
        return await call_next(request)

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        return NeMoGymResponse.model_validate(reply_with(message(current_rollout_id() or "none")))


@pytest.mark.parametrize(("whole", "path"), [(True, "/v1/responses"), (False, PATH)])
async def test_a_prefixed_path_is_understood_once_and_by_a_whole_server_before_anything_else_sees_it(whole, path):
    agents = []

    def build(client):
        config = BaseResponsesAPIAgentConfig(host="h", port=1, entrypoint="app.py", name="agent")
        agents.append(Watched(config=config, server_client=client, seen=[]))
        app = agents[0].build_app() if whole else agents[0].setup_webserver()
        assert [added.cls for added in app.user_middleware].count(RolloutContextMiddleware) == 1
        return app

    async with playing({"agent": Entry(AGENTS, build)}) as playground:
        answer = await playground.post("agent", PATH, {"input": "hello"})
    assert answer.body["output"][0]["content"][0]["text"] == "7-2-a1"
    assert agents[0].seen == [path]


class Asked(SimpleResponsesAPIAgent):
    """Answers with the rollout that stands in the path of its request, and the path of a call made for it."""

    async def responses(self, request: Request, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        named = request.path_params.get("rollout_id")
        return NeMoGymResponse.model_validate(
            reply_with(message(f"{named} {self.url_path_for_request('/v1/responses', request)}"))
        )


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(("path", "said"), [(PATH, f"7-2-a1 {PATH}"), ("/v1/responses", "None /v1/responses")])
async def test_a_request_behind_a_prefix_finds_its_rollout_in_its_path(whole, path, said):
    def build(client):
        agent = Asked(
            config=BaseResponsesAPIAgentConfig(host="h", port=1, entrypoint="app.py", name="agent"),
            server_client=client,
        )
        return agent.build_app() if whole else agent.setup_webserver()

    async with playing({"agent": Entry(AGENTS, build)}, observability_enabled=True) as playground:
        answer = await playground.post("agent", path, {"input": "hello"})
    assert answer.body["output"][0]["content"][0]["text"] == said


class Model(SimpleResponsesAPIModel):
    """Answers with the rollout that it works for."""

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        return NeMoGymResponse.model_validate(reply_with(message(current_rollout_id() or "none")))

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming) -> NeMoGymChatCompletion:
        raise NotImplementedError


class Resources(SimpleResourcesServer):
    """Answers with the rollout that it works for."""

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        raise NotImplementedError

    def setup_webserver(self):
        app = super().setup_webserver()
        app.post("/v1/responses")(self.rollout)
        return app

    async def rollout(self) -> dict[str, object]:
        return reply_with(message(current_rollout_id() or "none"))


@pytest.mark.parametrize(
    ("server", "config"), [(Model, BaseResponsesAPIModelConfig), (Resources, BaseResourcesServerConfig)]
)
@pytest.mark.parametrize("whole", [True, False])
async def test_models_and_environments_understand_a_prefix_before_their_application_is_completed(server, config, whole):
    client = ServerClient(BaseServerConfig(host="h", port=1), {})
    built = server(config=config(host="h", port=1, entrypoint="app.py", name="one"), server_client=client)
    app = built.build_app() if whole else built.setup_webserver()
    assert [added.cls for added in app.user_middleware].count(RolloutContextMiddleware) == 1
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://h") as caller:
        answer = await caller.post(PATH, json={"input": "hello"})
    assert answer.json()["output"][0]["content"][0]["text"] == "7-2-a1"


def test_where_nothing_is_observed_a_request_is_not_asked_for_its_rollout():
    config = BaseResponsesAPIAgentConfig(host="h", port=1, entrypoint="app.py", name="agent")
    client = ServerClient(BaseServerConfig(host="h", port=1), {})
    agent = Watched(config=config, server_client=client, seen=[])
    assert agent.url_path_for_request("/v1/responses", object()) == "/v1/responses"


@pytest.mark.parametrize(
    ("kept", "read"), [({}, None), ({"agent_session_id": "a1"}, "a1"), ({"agent_session_id": 7}, None)]
)
def test_a_session_is_named_by_text_and_by_nothing_else(kept, read):
    config = BaseResponsesAPIAgentConfig(host="h", port=1, entrypoint="app.py", name="agent")
    agent = Watched(config=config, server_client=ServerClient.model_construct(), seen=[])
    request = Request({"type": "http", "headers": [], "session": kept})
    assert agent._agent_session_id_from_request(request) == read


@pytest.mark.parametrize(
    ("observed", "block", "own", "prefix"),
    [
        (False, {"enabled": False}, True, ""),
        (True, {"enabled": False}, True, "/ng-rollout/3-0"),
        (False, {"enabled": True}, True, "/ng-rollout/3-0/training-token-capture"),
        (True, {"enabled": True}, True, "/ng-rollout/3-0/training-token-capture"),
        (True, {"enabled": True}, False, "/ng-rollout/3-0"),
        (False, {"enabled": True, "all_agents": True}, False, "/ng-rollout/3-0/training-token-capture"),
    ],
)
def test_a_block_about_token_ids_decides_which_agents_capture_them(observed, block, own, prefix):
    named = {"host": "h", "port": 1, "entrypoint": "app.py", "name": "agent", "token_id_capture": own}
    client = ServerClient(
        BaseServerConfig(host="h", port=1), {"observability_enabled": observed, "token_id_capture": block}
    )
    agent = Watched(config=BaseResponsesAPIAgentConfig(**named), server_client=client, seen=[])
    assert agent.url_path_for_run("/v1/responses", {"_ng_rollout_id": "3-0"}) == f"{prefix}/v1/responses"


@pytest.mark.parametrize(
    ("port", "address", "known"),
    [
        (80, "http://h/", True),
        (80, "http://h:80", True),
        (8080, "http://h:8080/", True),
        (8080, "http://h/", False),
        (80, "http://g/", False),
    ],
)
def test_tools_of_a_server_of_this_deployment_are_called_behind_the_rollouts_prefix(port, address, known):
    config = OmegaConf.create(
        {"observability_enabled": True, "rs": {"resources_servers": {"impl": {"host": "h", "port": port}}}}
    )
    client = ServerClient(BaseServerConfig(host="h", port=1), config)
    agent = Watched(
        config=BaseResponsesAPIAgentConfig(host="h", port=1, entrypoint="app.py", name="agent"),
        server_client=client,
        seen=[],
    )
    with rollout_context("3-0"):
        found = agent.base_url_for_tools(address)
    assert found == (address.rstrip("/") + "/ng-rollout/3-0" if known else address)

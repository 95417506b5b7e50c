import pytest
from fastapi import Request

from rollbook.servers.correlation import RolloutContextMiddleware, current_rollout_id
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

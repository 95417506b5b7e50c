import asyncio

import pytest
from fastapi import HTTPException, Request
from pydantic import ConfigDict, PrivateAttr, ValidationError

from rollbook.servers.client import ServerClient
from rollbook.servers.correlation import current_rollout
from rollbook.servers.kinds.agent_server import BaseResponsesAPIAgentConfig, SimpleResponsesAPIAgent
from rollbook.servers.kinds.agent_sessions import (
    AgentCloseSessionRequest,
    AgentCloseSessionResponse,
    AgentSeedSessionRequest,
    AgentSessions,
    AgentSessionSetupError,
    AgentSessionState,
)
from rollbook.servers.kinds.resources_server import BaseRunRequest, BaseVerifyResponse
from rollbook.servers.openai.openai_response import NeMoGymResponse, NeMoGymResponseCreateParamsNonStreaming
from unit.servers_kinds.playground import AGENTS, EPISODE, TASK, Entry, message, playing, reply_with

OTHER_EPISODE = {"rollout_id": "7-2", "attempt": 1}
SEED = {"agent_session_id": "a1", "episode_id": EPISODE, "task_id": TASK}
CLOSE = {"agent_session_id": "a1", "episode_id": EPISODE}
ACCESS = {"kind": "direct_http", "name": "tools", "required": True, "base_url": "http://h:1"}
ASKED = {"input": "hello"}


class Remembering(SimpleResponsesAPIAgent):
    """Answers with the session that it finds, and fails on demand."""

    _fails: set[str] = PrivateAttr(default_factory=set)
    _closed: list[str] = PrivateAttr(default_factory=list)

    async def responses(self, request: Request, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        async with self.agent_session(request) as state:
            context = current_rollout()
            said = {
                "session": state.agent_session_id if state else "none",
                "rollout": context.rollout_id if context else "none",
                "capture": str(bool(context and context.training_capture)),
            }
            return NeMoGymResponse.model_validate(reply_with(message("hi"), metadata=said))

    async def run(self, body: BaseRunRequest) -> BaseVerifyResponse:
        context = current_rollout()
        response = reply_with(message(context.rollout_id if context else "none"))
        return BaseVerifyResponse(**body.model_dump(), response=response, reward=1.0)

    async def _seed_agent_session_state(self, body: AgentSeedSessionRequest) -> AgentSessionState:
        if "half" in self._fails:
            raise AgentSessionSetupError(AgentSessionState(body), OSError("no sandbox"))
        if "seed" in self._fails:
            raise OSError("nothing there")
        return AgentSessionState(body)

    async def _close_agent_session_state(self, state: AgentSessionState) -> AgentCloseSessionResponse:
        if "close" in self._fails:
            raise OSError("still busy")
        self._closed.append(state.agent_session_id)
        bundle = {"source": "colours", "records": [{"kind": "mood", "tone": 1}]}
        return AgentCloseSessionResponse(
            agent_session_id=state.agent_session_id, agent_observations=bundle, resources_cookies={"c": "1"}
        )


class Agent:
    """An agent under test, with the cookie jar of one client."""

    def __init__(self, **config) -> None:
        self.config = config
        self.server = None

    def build(self, client: ServerClient) -> SimpleResponsesAPIAgent:
        config = BaseResponsesAPIAgentConfig(host="h", port=1, entrypoint="app.py", name="agent", **self.config)
        self.server = Remembering(config=config, server_client=client)
        return self.server

    def playing(self, **top):
        return playing({"agent": Entry(AGENTS, self.build)}, **top)


RECEIPT = {
    "agent_session_id": "a1",
    "agent_observations": {"source": "colours", "records": [{"kind": "mood", "tone": 1}], "gaps": []},
    "resources_cookies": {"c": "1"},
}
SEEDED = (200, {"agent_session_id": "a1"})
UNKNOWN_CLOSED = (200, {"agent_session_id": "a1", "agent_observations": None, "resources_cookies": None})


def refused(text: str):
    return 409, text


OPEN, SHUT = "/v1/agent_sessions", "/v1/agent_sessions/close"
WALKS = {
    "seed, the same seed again": [(OPEN, SEED, SEEDED), (OPEN, SEED, SEEDED)],
    "seed, close, close again": [(OPEN, SEED, SEEDED), (SHUT, CLOSE, (200, RECEIPT)), (SHUT, CLOSE, (200, RECEIPT))],
    "close of an unknown id, late seed": [(SHUT, CLOSE, UNKNOWN_CLOSED), (OPEN, SEED, refused("is closed"))],
    "seed after close": [(OPEN, SEED, SEEDED), (SHUT, CLOSE, (200, RECEIPT)), (OPEN, SEED, refused("is closed"))],
    "another body": [
        (OPEN, SEED, SEEDED),
        (OPEN, {**SEED, "tool_accesses": [ACCESS]}, refused("was seeded with another body")),
    ],
    "another episode's close": [
        (OPEN, SEED, SEEDED),
        (SHUT, {**CLOSE, "episode_id": OTHER_EPISODE}, refused("belongs to another episode")),
        (SHUT, CLOSE, (200, RECEIPT)),
        (SHUT, {**CLOSE, "episode_id": OTHER_EPISODE}, refused("belongs to another episode")),
    ],
    "a cookie bound to another session": [
        (OPEN, SEED, SEEDED),
        (OPEN, {**SEED, "agent_session_id": "a2"}, refused("is not the one of this cookie")),
        (SHUT, {**CLOSE, "agent_session_id": "a2"}, refused("is not the one of this cookie")),
    ],
}


@pytest.mark.parametrize("walk", WALKS.values(), ids=WALKS)
async def test_a_session_is_opened_once_and_closed_once(walk):
    cookies = {}
    async with Agent().playing() as playground:
        for path, body, (status, said) in walk:
            answer = await playground.post("agent", path, body, cookies=cookies)
            cookies = {**cookies, **answer.cookies}
            assert answer.status == status
            assert answer.body == said if status == 200 else said in answer.body["detail"]


async def test_a_response_finds_its_session_by_the_cookie_and_not_after_the_close():
    async with Agent().playing() as playground:
        outside = await playground.post("agent", "/v1/responses", ASKED)
        cookies = (await playground.post("agent", OPEN, SEED)).cookies
        inside = await playground.post("agent", "/v1/responses", ASKED, cookies=cookies)
        await playground.post("agent", SHUT, CLOSE)
        after = await playground.post("agent", "/v1/responses", ASKED, cookies=cookies)
    assert [outside.body["metadata"]["session"], inside.body["metadata"]["session"]] == ["none", "a1"]
    assert (after.status, after.body) == (409, {"detail": "agent session 'a1' is closed"})


async def test_a_cleanup_that_fails_keeps_the_session_for_another_close_and_for_nothing_else():
    agent = Agent()
    async with agent.playing() as playground:
        cookies = (await playground.post("agent", OPEN, SEED)).cookies
        agent.server._fails.add("close")
        failed = await playground.post("agent", SHUT, CLOSE, cookies=cookies)
        seed = await playground.post("agent", OPEN, SEED, cookies=cookies)
        asked = await playground.post("agent", "/v1/responses", ASKED, cookies=cookies)
        agent.server._fails.clear()
        closed = await playground.post("agent", SHUT, CLOSE, cookies=cookies)
    assert (failed.status, failed.body) == (500, "OSError('still busy')")
    assert seed.body == asked.body == {"detail": "agent session 'a1' is closing"}
    assert closed.body == RECEIPT
    assert agent.server._closed == ["a1"]


async def test_a_seed_that_fails_half_way_is_reported_and_closed_later():
    agent = Agent()
    async with agent.playing() as playground:
        agent.server._fails.add("half")
        failed = await playground.post("agent", OPEN, SEED)
        again = await playground.post("agent", OPEN, SEED)
        closed = await playground.post("agent", SHUT, CLOSE)
    assert (failed.status, failed.body) == (500, "OSError('no sandbox')")
    assert (again.status, again.body["detail"]) == (409, "agent session 'a1' could not be set up whole; close it")
    assert closed.body == RECEIPT


async def test_a_seed_that_fails_leaves_nothing_and_may_come_again():
    agent = Agent()
    async with agent.playing() as playground:
        agent.server._fails.add("seed")
        failed = await playground.post("agent", OPEN, SEED)
        agent.server._fails.clear()
        seeded = await playground.post("agent", OPEN, SEED)
    assert (failed.status, failed.body) == (500, "OSError('nothing there')")
    assert (seeded.status, seeded.body) == SEEDED


@pytest.mark.parametrize(
    ("workers", "status", "body"),
    [
        (1, 200, {"agent_session_id": "a1"}),
        (
            2,
            500,
            "ValueError('agent sessions require num_workers=1; agent has 2')",
        ),
    ],
)
async def test_sessions_need_one_process(workers, status, body):
    async with Agent(num_workers=workers).playing() as playground:
        answer = await playground.post("agent", OPEN, SEED)
    assert (answer.status, answer.body) == (status, body)


async def test_an_agent_without_session_hooks_answers_500():
    def build(client):
        config = BaseResponsesAPIAgentConfig(host="h", port=1, entrypoint="app.py", name="agent")
        return SimpleResponsesAPIAgent(config=config, server_client=client)

    async with playing({"agent": Entry(AGENTS, build)}) as playground:
        answer = await playground.post("agent", OPEN, SEED)
    assert (answer.status, answer.body[:19]) == (500, "NotImplementedError")


class Hands:
    """The seconds of a clock that is set by hand."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


async def _state(body: AgentSeedSessionRequest) -> AgentSessionState:
    return AgentSessionState(body)


async def _receipt(state: AgentSessionState) -> AgentCloseSessionResponse:
    return AgentCloseSessionResponse(agent_session_id=state.agent_session_id)


SEED_BODY, CLOSE_BODY = AgentSeedSessionRequest.model_validate(SEED), AgentCloseSessionRequest.model_validate(CLOSE)


async def _enter(sessions: AgentSessions) -> None:
    async with sessions.active("a1"):
        pass


STEPS = {
    "seed": lambda sessions: sessions.seed("a1", SEED_BODY, _state),
    "close": lambda sessions: sessions.close("a1", CLOSE_BODY, _receipt),
    "answer": _enter,
}


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
async def test_past_its_receipt_a_cookie_is_refused_and_the_bare_id_is_new(step):
    clock = Hands()
    sessions = AgentSessions(300.0, clock)
    await sessions.seed(None, SEED_BODY, _state)
    await sessions.close("a1", CLOSE_BODY, _receipt)
    clock.now = 299.0
    with pytest.raises(HTTPException, match="is closed"):
        await sessions.seed("a1", SEED_BODY, _state)
    clock.now = 300.0
    with pytest.raises(HTTPException, match="is gone") as caught:
        await step(sessions)
    assert caught.value.status_code == 409
    await sessions.seed(None, SEED_BODY, _state)


async def test_a_close_waits_for_the_answer_that_is_under_way_and_lets_no_further_one_begin():
    sessions = AgentSessions(300.0)
    await sessions.seed(None, SEED_BODY, _state)
    async with sessions.active("a1"):
        closing = asyncio.ensure_future(sessions.close("a1", CLOSE_BODY, _receipt))
        await asyncio.wait({closing}, timeout=0)
        assert not closing.done()
        with pytest.raises(HTTPException, match="is closing"):
            await _enter(sessions)
    assert (await closing).agent_session_id == "a1"


async def test_seeds_at_the_same_time_set_up_once():
    gate = asyncio.Event()
    set_up = []

    async def slow(body):
        set_up.append(body)
        await gate.wait()
        return AgentSessionState(body)

    sessions = AgentSessions(300.0)
    seeds = [asyncio.ensure_future(sessions.seed(None, SEED_BODY, slow)) for _ in range(3)]
    await asyncio.wait(seeds, timeout=0)
    gate.set()
    await asyncio.gather(*seeds)
    assert len(set_up) == 1


async def test_a_seed_that_waited_for_one_that_failed_sets_up_itself():
    gate = asyncio.Event()
    tries = []

    async def fails_first(body):
        tries.append(body)
        await gate.wait()
        if len(tries) == 1:
            raise OSError("first")
        return AgentSessionState(body)

    sessions = AgentSessions(300.0)
    seeds = [asyncio.ensure_future(sessions.seed(None, SEED_BODY, fails_first)) for _ in range(2)]
    await asyncio.wait(seeds, timeout=0)
    gate.set()
    assert [type(end) for end in await asyncio.gather(*seeds, return_exceptions=True)] == [OSError, type(None)]
    async with sessions.active("a1") as state:
        assert state.request == SEED_BODY


PATHS = [
    ("/v1/responses", {"rollout": "none", "capture": "False"}),
    ("/ng-rollout/7-2-a1/v1/responses", {"rollout": "7-2-a1", "capture": "False"}),
    ("/ng-rollout/7-2/training-token-capture/v1/responses", {"rollout": "7-2", "capture": "True"}),
]


@pytest.mark.parametrize(("path", "said"), PATHS)
async def test_a_response_is_made_inside_the_rollout_of_its_path(path, said):
    async with Agent().playing() as playground:
        answer = await playground.post("agent", path, ASKED)
    assert answer.body["metadata"] == {"session": "none", **said}


class AnyRow(BaseRunRequest):
    model_config = ConfigDict(extra="allow")


ROWS = [
    ({"_ng_rollout_id": "mine"}, "mine"),
    ({"_ng_task_index": 3, "_ng_rollout_index": 0}, "3-0"),
    ({"_ng_task_index": 3, "_ng_rollout_index": 0, "_ng_attempt_index": 2}, "3-0-a2"),
    ({}, None),
]


async def test_a_row_is_run_inside_the_rollout_that_it_names():
    async with Agent().playing() as playground:
        answer = await playground.post(
            "agent", "/run", {"responses_create_params": ASKED, "_ng_rollout_id": "3-0", "other": 1}
        )
    assert answer.body["response"]["output"][0]["content"][0]["text"] == "3-0"


@pytest.mark.parametrize(("row", "rollout"), ROWS)
@pytest.mark.parametrize("observed", [True, False])
async def test_paths_are_put_behind_the_rollout_where_model_calls_are_observed(row, rollout, observed):
    body = AnyRow.model_validate({"responses_create_params": ASKED, **row})
    prefix = f"/ng-rollout/{rollout}" if observed and rollout else ""
    agent = Agent()
    async with agent.playing(observability_enabled=observed):
        assert agent.server.url_path_for_run("/v1/responses", body) == f"{prefix}/v1/responses"
        assert agent.server.base_url_for_run("http://h:1/v1", body) == f"http://h:1{prefix}/v1"
        assert agent.server.base_url_for_run("http://h:1", body) == f"http://h:1{prefix}"


async def test_an_agent_that_captures_tokens_says_so_in_its_paths():
    agent = Agent(token_id_capture=True)
    async with agent.playing(observability_enabled=True):
        path = agent.server.url_path_for_run("/v1/responses", {"_ng_rollout_id": "3-0"})
    assert path == "/ng-rollout/3-0/training-token-capture/v1/responses"


async def test_a_session_may_use_the_accesses_of_the_agent_and_its_own_under_different_names():
    agent = Agent(tool_accesses=[ACCESS])
    async with agent.playing():
        other = AgentSeedSessionRequest.model_validate({**SEED, "tool_accesses": [{**ACCESS, "name": "more"}]})
        same = AgentSeedSessionRequest.model_validate({**SEED, "tool_accesses": [ACCESS]})
        assert [access.name for access in agent.server.effective_tool_accesses(other)] == ["tools", "more"]
        with pytest.raises(ValueError, match="'tools' stands more than once"):
            agent.server.effective_tool_accesses(same)


REFUSED = [
    {"agent_session_id": ""},
    {"tool_accesses": [ACCESS, ACCESS]},
    {"tool_accesses": [{**ACCESS, "name": "-dash"}]},
    {"tool_accesses": [{**ACCESS, "kind": "smoke signals"}]},
    {"unknown": 1},
]


@pytest.mark.parametrize("change", REFUSED)
def test_a_seed_that_breaks_its_schema_is_refused(change):
    with pytest.raises(ValidationError):
        AgentSeedSessionRequest.model_validate({**SEED, **change})


@pytest.mark.parametrize("window", [0, -1])
def test_a_retry_window_is_positive(window):
    with pytest.raises(ValidationError):
        BaseResponsesAPIAgentConfig(
            host="h", port=1, entrypoint="", name="a", session_close_retry_window_seconds=window
        )

"""Episodes that are played to a server again: what it is sent, what is rewarded, and what is an error."""

import re

import pytest
from fastapi import HTTPException, Request
from pydantic import Field

from responses_api_agents.simple_agent.tools import is_tool_name
from rollbook import (
    SESSION_ID_KEY,
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
    call_judge,
    replay_episode,
    unserved_server,
)
from rollbook.errors import VerifierFixtureError
from rollbook.servers.kinds.verifier_replay import is_called
from rollbook.servers.openai.openai_response import NeMoGymResponse
from rollbook.verbs.answer_forms import verify_request

ROW = {"responses_create_params": {"input": "Count."}}
THOUGHT = {"type": "reasoning", "id": "rs", "summary": []}
THOUGHT_OUT = ["reasoning", "message"]


class Row(BaseVerifyRequest, extra="allow"):
    pass


class Counts(SimpleResourcesServer):
    """Rewards the number that its tool was told in the session that is verified."""

    config: BaseResourcesServerConfig
    sums: dict[str, int] = Field(default_factory=dict)
    seen: list[str] = Field(default_factory=list)

    def setup_webserver(self):
        app = super().setup_webserver()
        app.post("/add")(self.add)
        return app

    async def seed_session(self, request: Request, body: dict) -> dict:
        self.seen.append("seeded with a response" if "response" in body else "seeded")
        self.sums[request.session[SESSION_ID_KEY]] = body.get("start", 0)
        return {}

    async def add(self, request: Request, number: dict) -> dict:
        self.seen.append(f"added {number['n']}")
        self.sums[request.session[SESSION_ID_KEY]] += number["n"]
        return {}

    async def verify(self, request: Request, body: Row) -> BaseVerifyResponse:
        extra = {"mask_sample": True, "failure_reason": "lost"} if body.model_extra.get("lost") else {}
        reward = self.sums[request.session[SESSION_ID_KEY]]
        if reward == "much":
            raise HTTPException(409, "much is no number")
        return BaseVerifyResponse(**{**dict(body), "reward": reward, **extra})


class Steps(SimpleResourcesServer):
    """Pays one for each step, and ends with the third."""

    config: BaseResourcesServerConfig
    turns: list[list[str]] = Field(default_factory=list)
    last: int = 3

    def setup_webserver(self):
        app = super().setup_webserver()
        app.post("/reset")(self.reset)
        app.post("/step")(self.step)
        return app

    async def reset(self) -> dict:
        return {"observation": None, "info": {}}

    async def step(self, body: Row) -> dict:
        self.turns.append([item.type for item in body.response.output])
        extra = {"mask_sample": True, "failure_reason": "lost"} if body.model_extra.get("lost") else {}
        return {"reward": 1, "terminated": len(self.turns) == self.last, **extra}

    async def verify(self, body: Row) -> BaseVerifyResponse:
        raise NotImplementedError


async def replayed(server, answer, **fields):
    return await replay_episode(server, Row.model_validate(verify_request({**ROW, **fields}, answer)))


def calls(*numbers):
    return [{"name": "add", "arguments": {"n": number}} for number in numbers]


async def test_the_row_is_seeded_the_calls_are_made_and_the_same_session_is_verified():
    server = unserved_server(Counts)
    assert await replayed(server, [*calls(3, 4), "Done."], start=10) == 17
    assert server.seen == ["seeded", "added 3", "added 4"]


async def test_a_tool_that_refuses_or_is_not_there_ends_nothing():
    broken = {"type": "function_call", "call_id": "c", "name": "add", "arguments": "{"}
    other = {"name": "no such/tool?", "arguments": {}}
    assert await replayed(unserved_server(Counts), [{"name": "add", "arguments": []}, broken, other, *calls(2)]) == 2


OWN = ["seed_session", "close_session", "verify", "../verify", "aggregate_metrics", "mcp", "reverify_mode", ".", ".."]


async def test_a_call_of_the_servers_own_routes_changes_no_session():
    server = unserved_server(Counts)
    own = [{"name": name, "arguments": {"start": 90}} for name in OWN]
    assert await replayed(server, [*calls(3), *own, *calls(4)], start=10) == 17
    assert server.seen == ["seeded", "added 3", "added 4"]


@pytest.mark.parametrize("name", [*OWN, "add", "look-up.v2", "a/b", "add?", "", "%76erify", "ädd", "verify\n"])
def test_what_is_called_in_a_replay_is_what_an_agent_calls(name):
    assert is_called(name) == is_tool_name(name)


@pytest.mark.parametrize("server", [Counts, Steps])
async def test_a_masked_reward_is_an_error_with_its_reason(server):
    with pytest.raises(VerifierFixtureError, match="the reward is masked: lost"):
        await replayed(unserved_server(server), "", lost=True)


async def test_a_refused_row_is_an_error_with_the_servers_words():
    with pytest.raises(VerifierFixtureError, match=r"/verify answered 409: .*much is no number"):
        await replayed(unserved_server(Counts), "", start="much")


@pytest.mark.parametrize(
    ("answer", "turns"),
    [
        ("stand", [["message"]]),
        (["hit", "stand"], [["message"], ["message"]]),
        ([*calls(1, 2)], [["function_call", "function_call"]]),
        (
            [*calls(1), {"type": "function_call_output", "call_id": "call_0", "output": "x"}, *calls(2), "so"],
            [["function_call"], ["function_call"], ["message"]],
        ),
        ([*calls(1), "so"], [["function_call"], ["message"]]),
        (
            [*calls(1), THOUGHT, *calls(2), THOUGHT, "so"],
            [["function_call", "reasoning", "function_call"], THOUGHT_OUT],
        ),
        ([THOUGHT, "so"], [THOUGHT_OUT]),
        ([], []),
        (["one", "two", "three", "four"], [["message"]] * 3),
    ],
)
async def test_a_server_that_is_stepped_gets_a_turn_at_a_time_until_it_ends(answer, turns):
    server = unserved_server(Steps)
    assert await replayed(server, answer) == len(turns)
    assert server.turns == turns


async def test_what_a_model_says_is_told_by_its_prompt_alone():
    server = unserved_server(Counts, model_says=str.upper)
    asked = {"input": [{"role": "system", "content": "a"}, {"role": "user", "content": [{"text": "b"}, {"text": "c"}]}]}
    for prompt, said in ((asked, "A\nB\nC"), ({"input": "who?"}, "WHO?")):
        reply = await call_judge(
            server.server_client, server_name="j", url_path="/v1/responses", json=prompt, response_model=NeMoGymResponse
        )
        assert reply.output_text == said


async def test_nothing_but_a_model_answers_an_unserved_server():
    server = unserved_server(Counts, model_says=str.upper)
    with pytest.raises(ValueError, match=re.escape("other/verify: `model_says` of an unserved server stands for")):
        await server.server_client.post("other", "/verify", json={})

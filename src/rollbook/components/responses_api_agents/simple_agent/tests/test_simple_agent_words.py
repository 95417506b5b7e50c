import functools
from copy import copy

import pytest

from responses_api_agents.simple_agent.app import SimpleAgent
from responses_api_agents.simple_agent.tests.bench import ASKED, ROW, TEAL, Bench
from unit.servers_kinds.playground import message, reply_with, thought


@pytest.mark.parametrize("status", [None, "completed"])
async def test_a_thoughts_status_is_not_said_to_the_model_again(status):
    said = thought("hm") | {"status": status, "own": None}
    bench = Bench(reply_with(said, TEAL), reply_with(message("teal")), tools={"/look_up": [{}]})
    answer = await bench.post("/v1/responses")
    assert answer.status == 200
    assert bench.model.bodies("/v1/responses")[1]["input"][1:3] == [thought("hm") | {"own": None}, TEAL]


async def test_what_was_sent_to_the_model_stays_as_it_was_sent():
    sent = []

    class Keeping(SimpleAgent):
        def model_post_init(self, context, /):
            super().model_post_init(context)
            self.server_client = copy(self.server_client)
            post = self.server_client.post
            self.server_client.post = lambda **call: sent.append(call["json"]) or post(**call)

    bench = Bench(reply_with(TEAL), reply_with(message("teal")), tools={"/look_up": [{}]}, agent=Keeping)
    await bench.post("/v1/responses")
    asked = [body for body in sent if "input" in body]
    assert asked == bench.model.bodies("/v1/responses")
    assert [len(body["input"]) for body in asked] == [1, 3]


async def test_run_is_called_where_something_stands_in_its_place(monkeypatch):
    called, run = [], SimpleAgent.run

    @functools.wraps(run)
    async def watched(self, request, body):
        called.append(type(self))
        return await run(self, request, body)

    monkeypatch.setattr(SimpleAgent, "run", watched)
    verified = {"responses_create_params": ASKED, "response": reply_with(message("x")), "reward": 1.0}
    bench = Bench(reply_with(message("x")), tools={"/seed_session": [{}], "/verify": [verified]})
    assert (await bench.post("/run", ROW)).status == 200
    assert called == [SimpleAgent]

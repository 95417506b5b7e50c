import asyncio

import pytest
from pydantic import Field

from resources_servers.gymnasium import GymnasiumServer, GymnasiumServerConfig, extract_text, tool_output
from rollbook import NeMoGymResponse, NeMoGymResponseFunctionToolCall
from unit.shelf.calling import built, message, response, served, tool_call

ROW = {"responses_create_params": {"input": "Count."}, "goal": 2, "_ng_task_index": 4}


class Counting(GymnasiumServer):
    """Pays a tenth for each step and ends at the row's goal; a response that says `cut` truncates, `break` fails."""

    config: GymnasiumServerConfig
    seen: list = Field(default_factory=list)

    async def reset(self, metadata, session_id):
        self.seen.append(metadata)
        before = self.session_state.get(session_id)
        self.session_state[session_id] = 0
        return None if before is None else "dirty", {"goal": metadata["goal"]}

    async def step(self, action, metadata, session_id):
        self.seen.append(metadata)
        self.session_state[session_id] += 1
        count = self.session_state[session_id]
        if extract_text(action) == "break":
            raise RuntimeError("broken")
        info = {"tool_outputs": [tool_output(item, count) for item in action.output if item.type == "function_call"]}
        return f"at {count}", 0.1, count == metadata["goal"], extract_text(action) == "cut", info


def step(*output, **fields):
    return {**ROW, **fields, "response": response(*output)}


async def test_an_episode_goes_from_reset_to_its_end():
    server = built(Counting)
    async with served(server) as session:
        assert await session.ok("/reset", ROW) == {"observation": None, "info": {"goal": 2}}
        first = await session.ok("/step", step("one"))
        assert first == {
            "observation": "at 1",
            "reward": 0.1,
            "terminated": False,
            "truncated": False,
            "info": {"tool_outputs": []},
        }
        assert len(server.session_state) == 1
        assert (await session.ok("/step", step("two")))["terminated"] is True
    assert server.session_state == {}


async def test_a_truncated_episode_keeps_nothing_either():
    server = built(Counting)
    async with served(server) as session:
        await session.ok("/reset", ROW)
        reply = await session.ok("/step", step("cut"))
    assert (reply["terminated"], reply["truncated"], server.session_state) == (False, True, {})


async def test_an_environment_is_handed_the_rows_own_fields():
    server = built(Counting)
    async with served(server) as session:
        await session.ok("/reset", {**ROW, "_ng_rollout_id": "4-0"})
        await session.ok("/step", step("one"))
    assert server.seen == [{"goal": 2, "_ng_task_index": 4}] * 2


async def test_a_reset_drops_an_unfinished_episode():
    async with served(built(Counting)) as session:
        await session.ok("/reset", ROW)
        await session.ok("/step", step("one"))
        assert (await session.ok("/reset", ROW))["observation"] is None
        assert (await session.ok("/step", step("one")))["observation"] == "at 1"


async def test_a_step_that_fails_leaves_the_episode_to_go_on():
    server = built(Counting)
    async with served(server) as session:
        await session.ok("/reset", ROW)
        assert (await session.post("/step", step("break"))).status == 500
        assert len(server.session_state) == 1


async def test_episodes_that_run_side_by_side_do_not_mix():
    async with served(built(Counting)) as server:
        sessions = [server.newcomer() for _ in range(6)]
        await asyncio.gather(*(session.ok("/reset", ROW) for session in sessions))

        async def played(session, steps):
            return [(await session.ok("/step", step("go", goal=9)))["observation"] for _ in range(steps)]

        seen = await asyncio.gather(*(played(session, number + 1) for number, session in enumerate(sessions)))
    assert [last[-1] for last in seen] == [f"at {number + 1}" for number in range(6)]


async def test_tool_calls_are_answered_in_the_info():
    async with served(built(Counting)) as session:
        await session.ok("/reset", ROW)
        reply = await session.ok("/step", step(tool_call("look", "c7")))
    assert reply["info"] == {"tool_outputs": [{"call_id": "c7", "output": "1"}]}


@pytest.mark.parametrize("path", ["/verify", "/seed_session", "/close_session"])
async def test_an_environment_that_is_stepped_has_no_route_of_the_verified_ones(path):
    async with served(built(Counting)) as session:
        assert (await session.post(path, step("x"))).status == 404


async def test_a_step_without_a_response_is_refused():
    async with served(built(Counting)) as session:
        assert (await session.post("/step", ROW)).status == 422


async def test_episodes_are_aggregated_and_their_responses_never_verified_again():
    results = [{"_ng_task_index": 0, "_ng_rollout_index": index, "reward": float(index)} for index in range(2)]
    async with served(built(Counting)) as session:
        metrics = await session.ok("/aggregate_metrics", {"verify_responses": results})
        assert metrics["agent_metrics"]["mean/reward"] == 0.5
        assert (await session.get("/reverify_mode")).json() == "unsupported"


def test_the_text_of_a_response_is_that_of_all_its_messages():
    spoken = response("<action>", tool_call("look"), "hit</action>", {**message(""), "content": []})
    assert extract_text(NeMoGymResponse.model_validate(spoken)) == "<action>hit</action>"


@pytest.mark.parametrize(
    ("result", "text"), [("as it is", "as it is"), ({"letters": ["G"]}, '{"letters": ["G"]}'), (None, "null")]
)
def test_a_tools_result_is_text_or_becomes_json(result, text):
    call = NeMoGymResponseFunctionToolCall.model_validate(tool_call("look", "c1"))
    assert tool_output(call, result) == {"call_id": "c1", "output": text}

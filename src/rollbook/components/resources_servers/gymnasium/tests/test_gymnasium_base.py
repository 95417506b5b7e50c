from resources_servers.gymnasium import GymnasiumServer, extract_text, tool_output
from rollbook import NeMoGymResponse, NeMoGymResponseFunctionToolCall
from unit.shelf.calling import built, response, served

ROW = {"responses_create_params": {"input": "Start."}, "word": "tea", "_ng_task_index": 4}


class Repeats(GymnasiumServer):
    """Shows the row's word, wants it three times, and cuts the episode short when it hears `enough`."""

    async def reset(self, metadata, session_id):
        self.session_state[session_id] = {"word": metadata["word"], "heard": 0}
        return f"Say {metadata['word']}.", {"fields": sorted(metadata)}

    async def step(self, action, metadata, session_id):
        state = self.session_state[session_id]
        text = extract_text(action)
        state["heard"] += state["word"] in text
        return "Again.", float(state["word"] in text), state["heard"] == 3, "enough" in text, {"heard": state["heard"]}


async def test_an_episode_is_reset_and_stepped_in_its_own_session():
    environment = built(Repeats)
    async with served(environment) as one:
        other = one.newcomer()
        first = await one.ok("/reset", ROW)
        await other.ok("/reset", {**ROW, "word": "milk"})
        steps = [await one.ok("/step", {**ROW, "response": response(text)}) for text in ("tea", "milk", "tea")]
        elsewhere = await other.ok("/step", {**ROW, "response": response("milk")})
    assert first == {"observation": "Say tea.", "info": {"fields": ["_ng_task_index", "word"]}}
    assert [step["reward"] for step in steps] == [1.0, 0.0, 1.0]
    assert (steps[-1]["info"], steps[-1]["terminated"], elsewhere["info"]) == ({"heard": 2}, False, {"heard": 1})
    assert len(environment.session_state) == 2


async def test_the_state_of_an_episode_is_dropped_when_it_ends_or_is_cut_short():
    environment = built(Repeats)
    async with served(environment) as server:
        for text in ("tea", "enough"):
            player = server.newcomer()
            await player.ok("/reset", ROW)
            for _ in range(3 if text == "tea" else 1):
                last = await player.ok("/step", {**ROW, "response": response(text)})
            assert (last["terminated"], last["truncated"]) == (text == "tea", text == "enough")
    assert environment.session_state == {}


async def test_there_is_nothing_to_verify():
    async with served(built(Repeats)) as server:
        assert (await server.post("/verify", {**ROW, "response": response("tea")})).status == 404
        results = [{"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 1.0}]
        metrics = await server.ok("/aggregate_metrics", {"verify_responses": results})
    assert metrics["key_metrics"]["mean/reward"] == 1.0


def test_text_is_everything_the_model_wrote():
    assert extract_text(NeMoGymResponse.model_validate(response("one ", "two"))) == "one two"


def test_the_output_of_a_tool_is_text():
    call = NeMoGymResponseFunctionToolCall(call_id="c", name="f", arguments="{}")
    assert tool_output(call, "plain") == {"call_id": "c", "output": "plain"}
    assert tool_output(call, {"a": [1]}) == {"call_id": "c", "output": '{"a": [1]}'}

import pytest
from pydantic import ValidationError

from responses_api_agents.gymnasium_agent.app import GymnasiumAgent, GymnasiumAgentConfig
from rollbook import ServerClient
from unit.servers_kinds.playground import AGENTS, MODELS, RESOURCES, Entry, Scripted, call, message, playing, reply_with

ROW = {"responses_create_params": {"input": "Play."}, "seed": 7}
FRAME = {
    "host": "h",
    "port": 1,
    "entrypoint": "app.py",
    "name": "agent",
    "model_server": {"type": "responses_api_models", "name": "model"},
    "resources_server": {"type": "resources_servers", "name": "game"},
}


def step(reward=0.0, observation=None, terminated=False, truncated=False, **info):
    ending = {"terminated": terminated, "truncated": truncated}
    return {"observation": observation, "reward": reward, **ending, "info": info}


class Game:
    """A gymnasium agent between a scripted model and a scripted game."""

    def __init__(self, *steps, observation="Your hand is 12.", reset_info=None, replies=None, **config) -> None:
        hits = [reply_with(message(f"hit {number}"), tokens=3) for number in range(20)]
        self.model = Scripted({"/v1/responses": replies or hits}, sets_cookie="model")
        reset = {"observation": observation, "info": reset_info or {}}
        self.game = Scripted({"/reset": [reset], "/step": list(steps), "/close": [{}]}, sets_cookie="game")
        self.config = config

    def build(self, client):
        return GymnasiumAgent(config=GymnasiumAgentConfig(**FRAME, **self.config), server_client=client)

    async def post(self, path="/run", body=ROW):
        servers = {
            "agent": Entry(AGENTS, self.build),
            "model": Entry(MODELS, self.model.app),
            "game": Entry(RESOURCES, self.game.app),
        }
        async with playing(servers) as playground:
            return await playground.post("agent", path, body)


def said(item):
    content = item.get("content", item.get("output", item.get("name")))
    return content if isinstance(content, str) else content[0]["text"]


async def test_an_episode_is_reset_played_and_its_reward_summed():
    game = Game(step(0.5, "Your hand is 15."), step(1.0, terminated=True, result="win"))
    answer = await game.post()
    assert game.game.paths() == ["/reset", "/step", "/step"]
    assert game.game.bodies("/reset") == [ROW]
    assert game.game.bodies("/step")[0].keys() == {*ROW, "response"}
    assert [[said(item) for item in body["input"]] for body in game.model.bodies("/v1/responses")] == [
        ["Play.", "Your hand is 12."],
        ["Play.", "Your hand is 12.", "hit 0", "Your hand is 15."],
    ]
    assert answer.status == 200
    assert [said(item) for item in answer.body["response"]["output"]] == ["hit 0", "Your hand is 15.", "hit 1"]
    assert answer.body["response"]["usage"]["total_tokens"] == 12
    ending = {key: answer.body[key] for key in ("reward", "terminated", "truncated", "info", "mask_sample")}
    assert ending == {
        "reward": 1.5,
        "terminated": True,
        "truncated": False,
        "info": {"result": "win"},
        "mask_sample": False,
    }


async def test_the_games_cookies_go_from_call_to_call():
    game = Game(step(), step(terminated=True))
    await game.post()
    assert [jar.get("game") for jar in game.game.cookies] == [None, "game-1", "game-2"]
    assert [jar.get("model") for jar in game.model.cookies] == [None, "model-1"]


@pytest.mark.parametrize("observation", [None, ""])
async def test_an_empty_observation_is_not_shown(observation):
    game = Game(step(terminated=True), observation=observation)
    await game.post()
    assert [said(item) for item in game.model.bodies("/v1/responses")[0]["input"]] == ["Play."]


@pytest.mark.parametrize(
    ("steps", "made", "terminated", "truncated"),
    [
        ([step()], 3, False, True),
        ([step(), step(truncated=True)], 2, False, True),
        ([step(), step(), step(terminated=True)], 3, True, False),
    ],
)
async def test_an_episode_ends_with_the_environment_or_with_its_steps(steps, made, terminated, truncated):
    game = Game(*steps, max_steps=3)
    body = (await game.post()).body
    assert (len(game.model.asked), body["terminated"], body["truncated"]) == (made, terminated, truncated)


async def test_outputs_of_tools_answer_the_models_calls():
    replies = [reply_with(call("guess", '{"word":"crane"}')), reply_with(message("done"))]
    outputs = [{"call_id": "c1", "output": "G_Y__"}]
    game = Game(step(observation="Go on.", tool_outputs=outputs), step(terminated=True), replies=replies)
    await game.post()
    last = game.model.bodies("/v1/responses")[1]["input"]
    assert [said(item) for item in last] == ["Play.", "Your hand is 12.", "guess", "G_Y__", "Go on."]


@pytest.mark.parametrize("is_idempotent", [True, False])
async def test_a_step_has_an_id_of_its_own_where_the_environment_knows_ids(is_idempotent):
    game = Game(step(), step(terminated=True), reset_info={"supports_step_idempotency": is_idempotent})
    await game.post()
    ids = [body.get("_ng_step_request_id") for body in game.game.bodies("/step")]
    assert len(set(ids)) == (2 if is_idempotent else 1)
    assert all(len(request_id) == 32 for request_id in ids if request_id)
    assert is_idempotent == all(ids)


CLOSES = [(True, [step(terminated=True)], 200), (True, [(500, "lost")], 500), (False, [step(terminated=True)], 200)]


@pytest.mark.parametrize(("is_closable", "steps", "status"), CLOSES)
async def test_a_closable_environment_is_closed_also_after_an_error(is_closable, steps, status):
    game = Game(*steps, reset_info={"supports_explicit_close": is_closable})
    answer = await game.post()
    assert answer.status == status
    assert (game.game.paths()[-1] == "/close") == is_closable


async def test_a_close_that_fails_does_not_change_the_episode():
    game = Game(step(1.0, terminated=True), reset_info={"supports_explicit_close": True})
    game.game.script["/close"] = [(500, "no")]
    answer = await game.post()
    assert (answer.status, answer.body["reward"]) == (200, 1.0)


async def test_the_environment_aggregates():
    game = Game()
    game.game.script["/aggregate_metrics"] = [{"agent_metrics": {"wins": 2}}]
    answer = await game.post("/aggregate_metrics", {"verify_responses": []})
    assert answer.body["agent_metrics"] == {"wins": 2}


def test_an_episode_has_a_step_at_least():
    with pytest.raises(ValidationError):
        GymnasiumAgentConfig(**FRAME, max_steps=0)


@pytest.mark.parametrize(("is_idempotent", "replayed"), [(True, {"/step"}), (False, set())])
async def test_only_a_step_with_an_id_may_be_sent_again(is_idempotent, replayed):
    game = Game(step(terminated=True), reset_info={"supports_step_idempotency": is_idempotent})
    sent = []

    class Noting(ServerClient):
        async def request(self, server_name, url_path, method, **options):
            sent.append((url_path, options.get("_replay", False)))
            return await super().request(server_name, url_path, method, **options)

    build = game.build
    game.build = lambda client: build(Noting(client.head_server_config, client.global_config_dict))
    await game.post()
    assert {path for path, may_replay in sent if may_replay} == replayed

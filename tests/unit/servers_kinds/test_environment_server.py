import asyncio
from typing import ClassVar

import pytest
from omegaconf import OmegaConf
from pydantic import BaseModel, PrivateAttr, ValidationError

from rollbook.records.episode_models import EpisodeFailure
from rollbook.records.exchange import DEADLINE_HEADER
from rollbook.records.failure_kinds import FailureStage
from rollbook.servers.client import ServerClient
from rollbook.servers.correlation import current_rollout_id
from rollbook.servers.http.http_client import request
from rollbook.servers.kinds.environment_server import (
    BaseEnvironmentServer,
    BaseEnvironmentServerConfig,
    CleanupContext,
    HandledEpisodeError,
)
from rollbook.servers.kinds.environment_server_cleanup import finished
from rollbook.servers.kinds.episodes import (
    BaseEpisodeRequest,
    BaseEpisodeResponse,
    SingleAgentTurnFailure,
    SingleAgentTurnResponse,
    SingleAgentTurnTaskInput,
)
from unit.servers_core.stand_ins import HEAD, in_process
from unit.servers_kinds.playground import ENVIRONMENTS, EPISODE, TASK, Entry, message, playing, reply_with

FRAME = {"host": "h", "port": 1, "entrypoint": "app.py", "name": "env", "cleanup_timeout_seconds": 0.5}
EPISODE_REQUEST = {"episode_id": EPISODE, "task": {"task_id": TASK, "task_input": {"wish": "score"}}}
RAIN = EpisodeFailure(failure_reason="rain", terminal=True, failure_kind="weather:rain", stage=FailureStage.AGENT)


class Wish(BaseModel):
    wish: str


class Score(BaseModel):
    reward: float
    rollout: str | None = None


class Request(BaseEpisodeRequest[Wish]):
    pass


class Response(BaseEpisodeResponse[Score]):
    pass


class Environment(BaseEnvironmentServer[Request, Response]):
    """Ends its episodes as they wish."""

    request_model: ClassVar[type[Request]] = Request
    response_model: ClassVar[type[Response]] = Response
    _entered: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)
    _left: list[str] = PrivateAttr(default_factory=list)
    _never: asyncio.Event = PrivateAttr(default_factory=asyncio.Event)

    async def run(self, request: Request, cleanup: CleanupContext) -> Response:
        wish = request.task.task_input.wish
        for name in ("first", "second"):
            cleanup.register_cleanup(name, lambda name=name: self._leave(name, wish))
        self._entered.set()
        if wish == "wait":
            await self._never.wait()
        if wish == "foreseen":
            raise HandledEpisodeError(RAIN)
        if wish == "timeout of its own":
            raise TimeoutError
        if wish == "defect":
            raise KeyError("colour")
        task_id = {**TASK, "task_id": "8"} if wish == "another task" else TASK
        score = Score(reward=1.0, rollout=current_rollout_id())
        return Response(episode_id=request.episode_id, task_id=task_id, result=score)

    async def _leave(self, name: str, wish: str) -> None:
        self._left.append(name)
        if wish == "dirty":
            raise OSError(name)
        if wish == "slow":
            await self._never.wait()


def environment(**config) -> Environment:
    return Environment(config=BaseEnvironmentServerConfig(**FRAME, **config), server_client=ServerClient(HEAD, {}))


def wishing(wish: str) -> Request:
    return Request.model_validate({"episode_id": EPISODE, "task": {"task_id": TASK, "task_input": {"wish": wish}}})


ENDINGS = [
    ("score", {"reward": 1.0, "rollout": "7-2"}, None),
    ("dirty", {"reward": 1.0, "rollout": "7-2"}, None),
    ("slow", {"reward": 1.0, "rollout": "7-2"}, None),
    ("wait", None, {"failure_reason": "Episode timed out", "terminal": False, "failure_kind": None}),
    (
        "foreseen",
        None,
        {"failure_reason": "rain", "terminal": True, "failure_kind": "weather:rain", "stage": "agent"},
    ),
    (
        "timeout of its own",
        None,
        {
            "failure_reason": "Unhandled environment server error: TimeoutError()",
            "terminal": True,
            "failure_kind": None,
        },
    ),
    (
        "defect",
        None,
        {
            "failure_reason": "Unhandled environment server error: KeyError('colour')",
            "terminal": True,
            "failure_kind": None,
        },
    ),
]


@pytest.mark.parametrize(("wish", "result", "failure"), ENDINGS)
async def test_an_episode_ends_as_the_table_says_and_is_cleaned_up_last_first(wish, result, failure):
    server = environment(default_episode_timeout_seconds=0.5)
    reply = await server.run_request(wishing(wish))
    assert reply.model_dump(mode="json") == {
        "episode_id": EPISODE,
        "task_id": TASK,
        "result": result,
        "failure": failure,
    }
    assert server._left == ["second", "first"]


async def test_an_answer_for_another_task_is_an_error_of_the_environment():
    failure = (await environment().run_request(wishing("another task"))).failure
    assert failure.terminal
    assert "the episode 7-2 of task '7' was answered for 7-2 of task '8'" in failure.failure_reason


async def test_a_long_error_is_cut_to_what_a_failure_holds():
    class Verbose(Environment):
        async def run(self, request, cleanup):
            raise ValueError("x" * 5000)

    server = Verbose(config=BaseEnvironmentServerConfig(**FRAME), server_client=ServerClient(HEAD, {}))
    assert len((await server.run_request(wishing("x"))).failure.failure_reason) == 2000


async def test_an_episode_whose_rollout_has_no_time_left_times_out_after_its_clean_up():
    server = environment(default_episode_timeout_seconds=60)
    body = wishing("wait").model_dump(mode="json")
    async with in_process(server.build_app()) as url:
        reply = await request("POST", url + "/run", json=body, headers={DEADLINE_HEADER: "0.03"})
    assert (reply.status, server._left) == (200, ["second", "first"])
    assert (await reply.json())["failure"] == {
        "failure_reason": "Episode timed out",
        "terminal": False,
        "failure_kind": None,
    }


async def test_an_episode_that_finds_no_place_in_time_is_a_failure_of_admission():
    server = environment(max_concurrent_episodes=1, queue_timeout_seconds=0)
    first = asyncio.ensure_future(server.run_request(wishing("wait")))
    await server._entered.wait()
    second = await server.run_request(wishing("score"))
    server._never.set()
    assert (await first).result == Score(reward=1.0, rollout="7-2")
    assert second.failure.model_dump(mode="json") == {
        "failure_reason": "Episode admission timed out",
        "terminal": False,
        "failure_kind": None,
        "stage": "admission",
    }
    assert (await server.run_request(wishing("score"))).failure is None


async def test_a_cancelled_episode_is_cleaned_up_and_gives_its_place_back():
    server = environment(max_concurrent_episodes=1, queue_timeout_seconds=0)
    running = asyncio.ensure_future(server.run_request(wishing("wait")))
    await server._entered.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert server._left == ["second", "first"]
    assert (await server.run_request(wishing("score"))).failure is None


async def test_cancellation_waits_for_a_cleanup_that_has_begun():
    gate = asyncio.Event()
    done = []

    async def slow() -> None:
        await gate.wait()
        done.append(True)

    waiting = asyncio.ensure_future(finished(slow()))
    for _ in range(2):
        await asyncio.wait({waiting}, timeout=0)
        waiting.cancel()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert done == [True]


async def test_a_cleanup_that_fails_early_is_told_and_tried_once_more_at_the_end():
    tries = []

    async def leave():
        tries.append(len(tries))
        if len(tries) == 1:
            raise OSError("still busy")

    cleanup = CleanupContext(1.0)
    handle = cleanup.register_cleanup("lamp", leave)
    with pytest.raises(OSError, match="still busy"):
        await handle.close()
    await cleanup.close()
    await cleanup.close()
    assert tries == [0, 1]


def test_a_failure_becomes_the_failure_of_the_servers_own_type():
    class Turn(Environment):
        response_model: ClassVar[type[SingleAgentTurnResponse]] = SingleAgentTurnResponse

    server = Turn(config=BaseEnvironmentServerConfig(**FRAME), server_client=ServerClient(HEAD, OmegaConf.create({})))
    told = server.failure_response(Request.model_validate(EPISODE_REQUEST), RAIN)
    assert isinstance(told.failure, SingleAgentTurnFailure)
    assert (told.failure.failure_reason, told.failure.stage) == ("rain", FailureStage.AGENT)


async def test_a_cleanup_that_was_closed_early_does_not_run_again():
    ran = []

    async def note(name: str) -> None:
        ran.append(name)

    cleanup = CleanupContext(1.0)
    handle = cleanup.register_cleanup("a", lambda: note("a"))
    cleanup.register_cleanup("b", lambda: note("b"))
    await handle.close()
    await handle.close()
    await cleanup.close()
    await cleanup.close()
    assert ran == ["a", "b"]


async def test_run_speaks_the_two_models_of_its_class():
    def build(client):
        return Environment(config=BaseEnvironmentServerConfig(**FRAME), server_client=client)

    async with playing({"env": Entry(ENVIRONMENTS, build)}) as playground:
        good = await playground.post("env", "/run", EPISODE_REQUEST)
        bad = await playground.post("env", "/run", {**EPISODE_REQUEST, "episode_id": {"rollout_id": "7-2-a1"}})
        empty = await playground.post("env", "/aggregate_metrics", {"verify_responses": []})
    assert (good.status, good.body) == (
        200,
        {"episode_id": EPISODE, "task_id": TASK, "result": {"reward": 1.0, "rollout": "7-2"}, "failure": None},
    )
    assert (bad.status, bad.body["detail"][0]["loc"]) == (422, ["body", "episode_id", "rollout_id"])
    assert empty.body["agent_metrics"] == {}


CONFIGS = [
    ({}, True),
    ({"max_concurrent_episodes": 4, "queue_timeout_seconds": 10}, True),
    ({"max_concurrent_episodes": 4}, False),
    ({"queue_timeout_seconds": 10}, False),
    ({"cleanup_timeout_seconds": 0}, False),
    ({"max_concurent_episodes": 4}, False),
]


@pytest.mark.parametrize(("change", "is_valid"), CONFIGS)
def test_a_queue_needs_an_end_and_every_key_a_meaning(change, is_valid):
    if is_valid:
        assert BaseEnvironmentServerConfig(**{**FRAME, **change})
        return
    with pytest.raises(ValidationError):
        BaseEnvironmentServerConfig(**{**FRAME, **change})


@pytest.mark.parametrize(
    "ending", [{}, {"result": {"reward": 1.0}, "failure": {"failure_reason": "x", "terminal": True}}]
)
def test_an_episode_has_exactly_one_ending(ending):
    with pytest.raises(ValidationError, match="exactly one of `result` and `failure`"):
        Response.model_validate({"episode_id": EPISODE, "task_id": TASK, **ending})


ASKED = {"input": "Weather in Oslo?"}
TASK_INPUTS = [
    ({"responses_create_params": ASKED, "task_data": {"city": "Oslo"}}, {"city": "Oslo"}),
    ({"responses_create_params": ASKED, "city": "Oslo", "verifier_metadata": {"a": [1, None]}}, None),
    ({"responses_create_params": ASKED, "city": "Rome", "task_data": {"city": "Oslo"}}, {"city": "Oslo"}),
    ({"responses_create_params": ASKED}, {}),
]


@pytest.mark.parametrize(("row", "data"), TASK_INPUTS)
def test_a_flat_task_input_is_folded_into_task_data(row, data):
    expected = {"city": "Oslo", "verifier_metadata": {"a": [1, None]}} if data is None else data
    assert SingleAgentTurnTaskInput.model_validate(row).task_data == expected


VERIFIED = {"responses_create_params": ASKED, "response": reply_with(message("Rain.")), "reward": 1.0}


def test_a_single_turns_result_has_the_fields_of_its_example():
    reply = SingleAgentTurnResponse.model_validate({"episode_id": EPISODE, "task_id": TASK, "result": VERIFIED})
    dumped = reply.model_dump(mode="json")
    assert dumped.keys() == {"episode_id", "task_id", "result", "failure"}
    rest = {"reward": 1.0, "mask_sample": False, "failure_kind": None, "failure_reason": None}
    result = dumped["result"]
    assert result.keys() == {"responses_create_params", "response", *rest, "ng_agent_observations"}
    assert {key: result[key] for key in rest} == rest


PARTIAL = reply_with(message("Rain."))


@pytest.mark.parametrize(
    ("failure", "keys"),
    [
        ({}, {"failure_reason", "terminal", "failure_kind"}),
        ({"stage": "agent"}, {"failure_reason", "terminal", "failure_kind", "stage"}),
        ({"partial_response": PARTIAL}, {"failure_reason", "terminal", "failure_kind", "partial_response"}),
    ],
)
def test_a_failure_leaves_out_what_it_does_not_know(failure, keys):
    told = SingleAgentTurnFailure.model_validate({"failure_reason": "x", "terminal": False, **failure})
    assert told.model_dump(mode="json").keys() == keys

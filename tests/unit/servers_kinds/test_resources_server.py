import threading

import pytest
from fastapi import Request
from omegaconf import OmegaConf
from starlette.responses import JSONResponse

from rollbook.errors import JudgeError
from rollbook.servers.base import SESSION_ID_KEY
from rollbook.servers.client import ServerClient
from rollbook.servers.kinds.judge import judge_failsafe
from rollbook.servers.kinds.resources_server import (
    BaseMultiRewardVerifyResponse,
    BaseResourcesServerConfig,
    BaseSeedSessionRequest,
    BaseSeedSessionResponse,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ResourcesSeedSessionRequest,
    ReverifyMode,
    SimpleResourcesServer,
)
from rollbook.testing.session_conformance import SessionContractError, check_resources_session_contract
from unit.servers_core.stand_ins import HEAD
from unit.servers_kinds.playground import EPISODE, RESOURCES, TASK, Entry, get, message, playing, reply_with

QUESTION = {"input": [{"role": "user", "content": "2+2?"}]}
SEED = {"resources_session_id": "r1", "episode_id": EPISODE, "task_id": TASK, "task_data": {"city": "Oslo"}}
ROW = {"responses_create_params": QUESTION, "expected_answer": "4", "response": reply_with(message("Answer: 4"))}


class SumConfig(BaseResourcesServerConfig):
    REVERIFY_MODE = ReverifyMode.STATELESS


class SumRequest(BaseVerifyRequest):
    expected_answer: str


class SumResponse(BaseVerifyResponse):
    expected_answer: str
    extracted_answer: str


class Sum(SimpleResourcesServer):
    config: SumConfig

    async def verify(self, body: SumRequest) -> SumResponse:
        said = body.response.output_text.removeprefix("Answer: ")
        if body.expected_answer == "ask a judge":
            raise JudgeError("ServerTimeoutError: " + "x" * 3000)
        return SumResponse(**body.model_dump(), reward=float(said == body.expected_answer), extracted_answer=said)


class Threaded(SimpleResourcesServer):
    """Verifies in a plain function, and says in which thread."""

    def verify(self, request: Request, body: BaseVerifyRequest) -> BaseMultiRewardVerifyResponse:
        if body.response.output_text == "judge":
            raise JudgeError("no judge")
        threaded = threading.current_thread() is not threading.main_thread()
        parts = {"threaded": float(threaded), "session": float(SESSION_ID_KEY in request.session)}
        return BaseMultiRewardVerifyResponse(**body.model_dump(), reward=sum(parts.values()), reward_components=parts)


class Colour(BaseSeedSessionRequest):
    colour: str


class Painted(SimpleResourcesServer):
    """Reads the row that opens its session."""

    async def seed_session(self, request: Request, body: ResourcesSeedSessionRequest | Colour):
        if isinstance(body, ResourcesSeedSessionRequest):
            return await super().seed_session(body)
        request.session["colour"] = body.colour
        return BaseSeedSessionResponse()

    async def verify(self, request: Request, body: BaseVerifyRequest) -> BaseVerifyResponse:
        return BaseVerifyResponse(**body.model_dump(), reward=float(request.session["colour"] == "teal"))


def entry(server_class, **given):
    def build(client: ServerClient):
        config = server_class.config_class()(host="127.0.0.1", port=1, entrypoint="app.py", name="sums", **given)
        return server_class(config=config, server_client=client)

    return {"sums": Entry(RESOURCES, build, {"domain": "math"})}


async def test_verify_echoes_the_row_and_adds_its_reward():
    async with playing(entry(Sum)) as playground:
        answer = await playground.post("sums", "/verify", ROW)
    assert answer.status == 200
    assert answer.body["responses_create_params"]["input"][0]["content"] == "2+2?"
    assert answer.body["response"]["output"][0]["content"][0]["text"] == "Answer: 4"
    rest = {key: value for key, value in answer.body.items() if key not in {"responses_create_params", "response"}}
    assert rest == {
        "reward": 1.0,
        "mask_sample": False,
        "failure_kind": None,
        "failure_reason": None,
        "expected_answer": "4",
        "extracted_answer": "4",
    }


async def test_a_row_without_what_the_verifier_annotates_is_422():
    async with playing(entry(Sum)) as playground:
        answer = await playground.post("sums", "/verify", {key: ROW[key] for key in ROW if key != "expected_answer"})
    assert answer.status == 422
    assert answer.body["detail"][0]["loc"] == ["body", "expected_answer"]


async def test_the_rollout_id_of_a_row_is_read_and_never_dumped():
    body = SumRequest.model_validate({**ROW, "_ng_rollout_id": "3-0"})
    assert body.capture_rollout_id == "3-0"
    assert not {"capture_rollout_id", "_ng_rollout_id"} & body.model_dump().keys()


async def test_a_judge_that_cannot_be_asked_gives_a_masked_row_with_status_200():
    row = {**ROW, "expected_answer": "ask a judge"}
    async with playing(entry(Sum)) as playground:
        answer = await playground.post("sums", "/verify", row)
    reason = ("ServerTimeoutError: " + "x" * 3000)[:2000]
    assert answer.status == 200
    assert answer.body["response"]["output"][0]["content"][0]["text"] == "Answer: 4"
    assert {key: answer.body[key] for key in answer.body if key not in {"responses_create_params", "response"}} == {
        "expected_answer": "ask a judge",
        "reward": 0.0,
        "mask_sample": True,
        "failure_kind": "judge_failed",
        "failure_reason": reason,
        "instance_config": {"mask_sample": True},
        "_ng_failure_class": "judge_failed",
        "_ng_failure_judge_error": reason,
    }


async def test_a_judge_failure_keeps_the_rest_of_the_instance_config():
    class Configured(BaseVerifyRequest):
        instance_config: dict

    async def verify(body: Configured) -> BaseVerifyResponse:
        raise JudgeError("no judge")

    body = Configured.model_validate({**ROW, "instance_config": {"a": 1, "mask_sample": False}})
    reply = await judge_failsafe(verify)(body=body)
    assert b'"instance_config":{"a":1,"mask_sample":true}' in reply.body


async def test_a_judge_failure_is_a_json_response():
    async def verify(body: BaseVerifyRequest) -> BaseVerifyResponse:
        raise JudgeError("no judge")

    reply = await judge_failsafe(verify)(body=BaseVerifyRequest.model_validate(ROW))
    assert isinstance(reply, JSONResponse)


async def test_a_method_may_wear_the_failsafe_itself():
    class Wearing(Sum):
        @judge_failsafe
        async def verify(self, body: SumRequest) -> SumResponse:
            raise JudgeError("no judge")

    async with playing(entry(Wearing)) as playground:
        answer = await playground.post("sums", "/verify", ROW)
    assert (answer.body["failure_reason"], answer.body["expected_answer"]) == ("no judge", "4")


async def test_a_plain_verify_runs_in_a_thread_with_its_session():
    async with playing(entry(Threaded)) as playground:
        answer = await playground.post("sums", "/verify", {**ROW, "response": reply_with(message("x"))})
        failed = await playground.post("sums", "/verify", {**ROW, "response": reply_with(message("judge"))})
    assert answer.body["reward_components"] == {"threaded": 1.0, "session": 1.0}
    assert answer.body["reward"] == 2.0
    assert failed.body["failure_reason"] == "no judge"


SEEDS = [
    ({"responses_create_params": QUESTION, "colour": "teal"}, {}),
    (SEED, {"resources_session_id": "r1", "resources_tools": None, "sandbox_access": None}),
    ({**SEED, "colour": "a field too many for the typed form"}, {}),
]


@pytest.mark.parametrize(("body", "reply"), SEEDS)
@pytest.mark.parametrize("server_class", [Sum, Painted])
async def test_a_seed_of_the_typed_form_is_typed_and_any_other_is_a_row(server_class, body, reply):
    async with playing(entry(server_class)) as playground:
        answer = await playground.post("sums", "/seed_session", body)
    assert (answer.status, answer.body) == (200, reply)


async def test_what_a_row_seeded_is_found_by_the_cookie():
    async with playing(entry(Painted)) as playground:
        seeded = await playground.post("sums", "/seed_session", {"colour": "teal"})
        verified = await playground.post("sums", "/verify", ROW, cookies=seeded.cookies)
    assert list(seeded.cookies) == ["Painted___sums"]
    assert verified.body["reward"] == 1.0


@pytest.mark.parametrize("server_class", [Sum, Painted])
async def test_the_base_keeps_the_contract_of_typed_sessions(server_class):
    server = entry(server_class)["sums"].build(ServerClient(HEAD, OmegaConf.create({})))
    await check_resources_session_contract(server.build_app(), SEED, keeps_state=True)


class Forgetful(Sum):
    async def seed_session(self, body: ResourcesSeedSessionRequest):
        return {"resources_session_id": body.resources_session_id}


class Renaming(Sum):
    async def seed_session(self, body: ResourcesSeedSessionRequest):
        return {"resources_session_id": "another"}


BREACHES = [
    (Forgetful, True, "a seed by another episode must be refused"),
    (Renaming, False, "the first seed must be answered with the session's id"),
]


@pytest.mark.parametrize(("server_class", "keeps_state", "message_start"), BREACHES)
async def test_the_contract_check_names_the_first_breach(server_class, keeps_state, message_start):
    server = entry(server_class)["sums"].build(ServerClient(HEAD, OmegaConf.create({})))
    with pytest.raises(SessionContractError, match=message_start):
        await check_resources_session_contract(server.build_app(), SEED, keeps_state=keeps_state)


async def test_a_close_of_an_unknown_session_succeeds_and_blocks_a_late_seed():
    close = {"resources_session_id": "r1", "episode_id": EPISODE}
    async with playing(entry(Sum)) as playground:
        closed = await playground.post("sums", "/close_session", close)
        late = await playground.post("sums", "/seed_session", SEED)
    assert (closed.status, closed.body) == (200, {"resources_session_id": "r1"})
    assert (late.status, late.body["detail"].split(";")[0]) == (409, "resources session 'r1' is closed")


@pytest.mark.parametrize(("server_class", "mode"), [(Sum, "stateless"), (SimpleResourcesServer, "unknown")])
async def test_the_reverify_mode_is_a_json_string(server_class, mode):
    async with playing(entry(server_class)) as playground:
        assert (await get(playground, "sums", "/reverify_mode")).body == mode


async def test_code_beside_a_server_asks_for_its_reverify_mode():
    server = entry(Sum)["sums"].build(ServerClient(HEAD, OmegaConf.create({})))
    assert await server.get_reverify_mode() is ReverifyMode.STATELESS


@pytest.mark.filterwarnings("error")
async def test_the_metrics_are_asked_for_and_answered_without_a_warning():
    async with playing(entry(Sum)) as playground:
        assert (await playground.post("sums", "/aggregate_metrics", {"verify_responses": []})).status == 200


async def test_the_aggregate_reply_is_the_worked_example():
    rows = [
        {"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 1.0},
        {"_ng_task_index": 0, "_ng_rollout_index": 1, "reward": 0.0},
        {"_ng_task_index": 1, "_ng_rollout_index": 0, "reward": 1.0},
        {"_ng_task_index": 1, "_ng_rollout_index": 1, "reward": 0.0, "mask_sample": True},
    ]
    async with playing(entry(Sum)) as playground:
        body = (await playground.post("sums", "/aggregate_metrics", {"verify_responses": rows})).body
    assert body.keys() == {
        "group_level_metrics",
        "agent_metrics",
        "key_metrics",
        "perf_summary",
        "repeat_level_metrics",
    }
    assert body["agent_metrics"]["mean/reward"] == pytest.approx(2 / 3)
    assert body["agent_metrics"]["coverage/masked_rollouts"] == 1
    assert [group["mean/reward"] for group in body["group_level_metrics"]] == [0.5, 1.0]

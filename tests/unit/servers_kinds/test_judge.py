import asyncio

import pytest
from pydantic import BaseModel

from rollbook.errors import JudgeError
from rollbook.servers.kinds.judge import call_judge, reraise_judge_errors
from unit.servers_kinds.playground import MODELS, Entry, Scripted, playing


class Verdict(BaseModel):
    verdict: str


async def asked(reply) -> Verdict:
    judge = Scripted({"/v1/responses": [reply]})
    async with playing({"judge": Entry(MODELS, judge.app)}) as playground:
        return await call_judge(
            playground.client, server_name="judge", url_path="/v1/responses", json={"q": 1}, response_model=Verdict
        )


async def test_a_judges_reply_is_validated():
    assert (await asked({"verdict": "A"})).verdict == "A"


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ((503, {"detail": "busy"}), "ClientResponseError: 503"),
        ({"no": "verdict"}, "ValidationError: 1 validation error"),
        ((200, b"<html>"), "JSONDecodeError: "),
    ],
)
async def test_whatever_keeps_a_judge_from_answering_is_a_judge_error(reply, text):
    with pytest.raises(JudgeError) as caught:
        await asked(reply)
    assert str(caught.value).startswith(text)


async def test_a_judge_error_is_not_wrapped_again():
    first = JudgeError("first")

    async def failing():
        raise first

    with pytest.raises(JudgeError) as caught:
        await reraise_judge_errors(failing())
    assert caught.value is first


async def test_cancellation_is_no_judge_error():
    waiting = asyncio.ensure_future(reraise_judge_errors(asyncio.get_running_loop().create_future()))
    await asyncio.wait({waiting}, timeout=0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

"""What is kept and shown of an error's body, and what never is."""

import pytest

from rollbook.outcomes.classify import cause_of, ending_of_reply
from rollbook.outcomes.error_text import BODY_KEPT, kept_text, without_credentials
from rollbook.records.codec import RunStamp, encode, saved_row
from rollbook.records.exchange import Reply
from rollbook.records.identity import RolloutKey
from rollbook.records.task import Rollout

FLAT = Rollout(RolloutKey(0, 1), b"{}", "env")
KEY = "sk-proj-0123456789abcdefSECRET"


@pytest.mark.parametrize(
    "text",
    [
        f"Incorrect API key provided: {KEY}.",
        f'{{"error":"bad key","api_key":"{KEY}"}}',
        f'{{\\"x-api-key\\": \\"{KEY}\\"}}',
        f"Authorization: Bearer {KEY}",
        "'Authorization': 'Bearer abcdefSECRETghij'",
        "authorization: basic dXNlcjpTRUNSRVQ=SECRET",
        "api_key=abcSECRETdef&model=m",
        "nvapi-aaaaaaaaaaSECRET",
        "https://user:passSECRETword@host/v1",
        "hf_aaaaaaaaSECRETaa",
        *(
            f"{prefix}{dash}aaaaaaaaSECRETaa"
            for prefix in ("SK", "pk", "rk", "nvapi", "ghp", "gsk", "xoxb", "r8")
            for dash in "-_"
        ),
        "AIzaaaaaaaaaaaaaaaaaaaSECRETa",
    ],
)
def test_what_looks_like_a_credential_is_never_kept(text):
    assert "SECRET" not in without_credentials(text)
    ending = ending_of_reply(Reply(500, f"401: {text}".encode()), FLAT)
    assert "SECRET" not in (cause_of(ending) or "")
    assert b"SECRET" not in encode(saved_row(ending, {"_ng_task_index": 0, "_ng_rollout_index": 1})[1])
    assert "401" in cause_of(ending)


@pytest.mark.parametrize(
    "text",
    [
        '{"error":"bad key"}',
        "401 Unauthorized",
        "the task asks for a key",
        "http://127.0.0.1:8000/v1",
        "sk-1",
        "bearer of news",
    ],
)
def test_what_is_no_credential_stays(text):
    assert without_credentials(text) == text


EPISODE = Rollout(
    RolloutKey(0, 1), b'{"task_id":{"taskset":"ts","task_id":"t1"},"task_input":{}}', "env", is_episode=True
)
NAMED = {"episode_id": {"rollout_id": "0-1", "attempt": 0}, "task_id": {"taskset": "ts", "task_id": "t1"}}
SAID = f"Incorrect API key provided: {KEY}. Ask for another"


@pytest.mark.parametrize(
    "payload",
    [
        {"_ng_failure_class": "own", "failure_reason": SAID},
        {"_ng_failure_class": "own", "_ng_failure_message": SAID, "error": SAID, "error_message": SAID},
        {"_ng_failure_class": "own", "error": {"message": [SAID], "code": 401}},
        {"_ng_failure_class": "own", "error": {"message": SAID, "api_key": 123456789}},
        {"_ng_failure_class": "judge_failed", "_ng_failure_judge_error": SAID, "reward": 0.0},
        {"_ng_no_persist": True, "error": SAID},
    ],
)
def test_a_failure_that_a_reply_reports_keeps_no_credential(payload):
    ending = ending_of_reply(Reply(200, encode(payload)), FLAT)
    for run in (None, RunStamp("run", 3)):
        row = saved_row(ending, {"_ng_task_index": 0, "_ng_rollout_index": 1}, run)[1]
        assert b"SECRET" not in encode(row)
        assert b"Ask for another" in encode(row)
    assert "SECRET" not in ending.outcome.message


def test_an_error_that_is_an_object_stays_one():
    payload = {"_ng_failure_class": "own", "error": {"message": [SAID], "code": 401, "more": None}}
    ending = ending_of_reply(Reply(200, encode(payload)), FLAT)
    masked = "Incorrect API key provided: ****. Ask for another"
    assert ending.payload["error"] == {"message": [masked], "code": 401, "more": None}


def test_a_failure_of_an_episode_keeps_no_credential():
    failure = {"failure_reason": SAID, "terminal": False, "partial_response": {"output": "sk-this-is-what-was-said"}}
    ending = ending_of_reply(Reply(200, encode(NAMED | {"failure": failure})), EPISODE)
    assert "SECRET" not in ending.outcome.message
    assert ending.payload["_ng_failure_partial_response"] == failure["partial_response"]


def test_what_a_result_says_is_its_producers():
    payload = {"reward": 1.0, "failure_reason": SAID, "error": SAID}
    assert ending_of_reply(Reply(200, encode(payload)), FLAT).fields() == payload


def test_a_credential_at_the_cut_leaves_no_half():
    assert "abcdef" not in kept_text(b"x" * (BODY_KEPT - 10) + b" " + KEY.encode())

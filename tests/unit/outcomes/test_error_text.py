"""What is kept and shown of an error's body, and what never is."""

import json

import pytest

from rollbook.outcomes.classify import cause_of, ending_of_reply
from rollbook.outcomes.credentials import names_credential, without_credentials
from rollbook.outcomes.error_text import BODY_KEPT, beginning, kept_text
from rollbook.outcomes.reasons import REASON_KEPT
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
        "Basic dXNlcjpTRUNSRVQSECRET==",
        "Bearer 0123SECRET",
        "authorization=token opaqueSECRET",
        "api_key: abc123SECRET",
        f"API key: SECRET{'A' * 30}",
        "{'api_key': 'plainSECRET'}",
        'api_key = "plainSECRET"',
        "api_key:plainSECRET",
        "https://user:wordSECRET@at@host/v1",
        "https://user:word@atSECRET@host/v1",
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
        "bearer authentication failed",
        "basic authentication is off",
        "Basic arithmetic check failed",
        "Basic Authentication required",
        "HF_HUB_OFFLINE=1 is set",
        "HF_HUB_DOWNLOAD_TIMEOUT_10",
        "PK_VIOLATION_ON_users",
        "pk_constraint_violated",
        "hf_transfer_enabled",
        "rk_integrator failed",
        "r8_interpreter",
        "'sk-learn-extra' missing",
        "sk-AuthenticationError",
        "api_key: required field",
        "Invalid API key: please check",
        "API key: OpenAI requires one",
        "api_key: AuthenticationError",
        "API key: https://platform.openai.com/account/api-keys",
        "authorization: header is missing",
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


@pytest.mark.parametrize(
    ("error", "kept"),
    [
        ({"api_key": 12345678, "code": 7}, {"api_key": 12345678, "code": 7}),
        ({"api_key": "plain", "token_count": "7"}, {"api_key": "****", "token_count": "7"}),
        ({"X-API-Key": "", "clientSecret": "plain"}, {"X-API-Key": "", "clientSecret": "****"}),
        ({"api_key": ["field required"], "password": None}, {"api_key": ["field required"], "password": None}),
        ({"headers": [{"Authorization": "plain"}]}, {"headers": [{"Authorization": "****"}]}),
        ({KEY: {"n": 10**30, "x": 1.5, "no": False}}, {"****": {"n": 10**30, "x": 1.5, "no": False}}),
        ({"text": '401 {"api_key": "plainSECRET"}'}, {"text": '401 {"api_key": "****"}'}),
        ([], []),
        (12345678, 12345678),
    ],
)
@pytest.mark.parametrize("also", [{"_ng_failure_class": "own"}, {"_ng_no_persist": True}, {"reward": "none"}])
def test_every_value_of_a_reason_keeps_its_type(error, kept, also):
    body = json.dumps(also | {"error": error}).encode()
    assert ending_of_reply(Reply(200, body), FLAT).payload["error"] == kept


def test_a_failure_of_an_episode_keeps_no_credential():
    failure = {"failure_reason": SAID, "terminal": False, "partial_response": {"output": "sk-this-is-what-was-said"}}
    ending = ending_of_reply(Reply(200, encode(NAMED | {"failure": failure})), EPISODE)
    assert "SECRET" not in ending.outcome.message
    assert ending.payload["_ng_failure_partial_response"] == failure["partial_response"]


def test_what_a_result_says_is_its_producers():
    payload = {"reward": 1.0, "failure_reason": SAID, "error": SAID}
    assert ending_of_reply(Reply(200, encode(payload)), FLAT).fields() == payload


URL = "https://user:SECRETpassword@host/"


@pytest.mark.parametrize("key", ["error", "failure_reason", "_ng_failure_message", "_ng_failure_judge_error"])
@pytest.mark.parametrize("before", range(BODY_KEPT - 40, BODY_KEPT, 3))
def test_a_message_that_is_cut_in_a_credential_leaves_no_half(key, before):
    said = f"{'x' * before} {URL}"
    flat = ending_of_reply(Reply(200, encode({"_ng_failure_class": "own", key: said, "error_message": said})), FLAT)
    assert b"SECRET" not in encode(saved_row(flat, {"_ng_task_index": 0, "_ng_rollout_index": 1})[1])
    episode = NAMED | {"failure": {"failure_reason": said, "terminal": False}}
    assert "SECRET" not in ending_of_reply(Reply(200, encode(episode)), EPISODE).outcome.message


@pytest.mark.parametrize("before", range(40))
def test_what_is_masked_makes_no_room_for_a_half(before):
    told = beginning("x" * before + f" {URL}" * 1000, BODY_KEPT)
    assert "SECRET" not in told
    assert told.endswith("…")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("x" * BODY_KEPT, "x" * BODY_KEPT),
        ("x" * (BODY_KEPT + 1), "x" * BODY_KEPT + "…"),
        ("é" * BODY_KEPT, "é" * BODY_KEPT),
        ("é" * (BODY_KEPT * 9), "é" * BODY_KEPT + "…"),
        (f"{'x' * (BODY_KEPT - 20)} {URL}", f"{'x' * (BODY_KEPT - 20)} https://****@host/"),
        ("sk-" + "1" * 9999, "****…"),
    ],
)
def test_an_ellipsis_says_that_there_was_more(text, kept):
    assert kept_text(text.encode()) == kept


@pytest.mark.parametrize(
    "error",
    [
        "word " * 1_000_000,
        ["word"] * 1_000_000,
        {"message": "word " * 1_000_000, "code": 401},
        {str(n): [n] for n in range(100_000)},
    ],
    ids=["text", "array", "text in an object", "object"],
)
def test_a_reason_without_end_is_kept_from_its_beginning(error):
    ending = ending_of_reply(Reply(200, encode({"_ng_failure_class": "own", "error": error})), FLAT)
    kept = ending.payload["error"]
    assert type(kept) is type(error)
    assert "…" in str(kept)
    assert len(encode(kept)) < 4 * REASON_KEPT
    assert "code" not in error or kept["code"] == error["code"]
    assert ending.outcome.message[:BODY_KEPT] == str(error)[:BODY_KEPT]


def test_a_reason_that_is_nested_deep_is_kept_in_part():
    deep = b"[" * 900 + b"]" * 900
    ending = ending_of_reply(Reply(200, b'{"_ng_failure_class":"own","error":%b}' % deep), FLAT)
    assert str(ending.payload["error"]).strip("[]") == "'…'"


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        *((name, True) for name in ("api_key", "OPENAI_API_KEY", "X-Api-Key", "Authorization", "apiKey", "set-cookie")),
        *((name, False) for name in ("key", "token", "stop_token", "message", "code", "password_rules")),
    ],
)
def test_a_name_tells_a_credential_by_its_end(name, is_one):
    assert names_credential(name) is is_one


def test_a_credential_at_the_cut_leaves_no_half():
    assert "abcdef" not in kept_text(b"x" * (BODY_KEPT - 10) + b" " + KEY.encode())

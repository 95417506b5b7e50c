"""What is kept and shown of an error's body, and what never is."""

import pytest

from rollbook.outcomes.classify import cause_of, ending_of_reply
from rollbook.outcomes.error_text import BODY_KEPT, kept_text, without_credentials
from rollbook.records.codec import encode, saved_row
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


def test_a_credential_at_the_cut_leaves_no_half():
    assert "abcdef" not in kept_text(b"x" * (BODY_KEPT - 10) + b" " + KEY.encode())

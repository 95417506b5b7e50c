"""Which parts of a configuration are credentials."""

import pytest

from rollbook.recovery.credentials import MARKER, names_credential, without_credentials


@pytest.mark.parametrize(
    "key",
    [
        "api_key",
        "openai_api_key",
        "policy_api_key",
        "apiKey",
        "APIKey",
        "X-Api-Key",
        "apikey",
        "api_keys",
        "hf_token",
        "HF_TOKEN",
        "token",
        "accessToken",
        "Authorization",
        "db_password",
        "client_secret",
        "AWS_SECRET_ACCESS_KEY",
        "aws_access_key_id",
        "credentials",
        "default_headers",
        "key",
    ],
)
def test_a_key_that_names_a_credential_is_known(key):
    assert names_credential(key)


@pytest.mark.parametrize(
    "key",
    [
        "max_output_tokens",
        "max_tokens",
        "return_token_id_information",
        "supply_prefix_token_ids",
        "token_id_capture",
        "tokenizer",
        "stop_token",
        "eos_token",
        "answer_key",
        "label_key",
        "keys",
        "secret_word",
        "model",
        "monkey",
        "",
        "123",
    ],
)
def test_a_setting_whose_name_only_sounds_like_a_credential_is_none(key):
    assert not names_credential(key)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("https://me:hunter2@host/v1", f"https://{MARKER}@host/v1"),
        ("https://host/v1?api_key=hunter2&a=1", f"https://host/v1?api_key={MARKER}&a=1"),
        ("Authorization: Bearer hunter2hunter2", f"Authorization: Bearer {MARKER}"),
        (["--api-key", "hunter2", "--seed", "1"], ["--api-key", MARKER, "--seed", "1"]),
        (["--api-key=hunter2", "--seed=1"], [f"--api-key={MARKER}", "--seed=1"]),
        (["--verbose", "x"], ["--verbose", "x"]),
        ({"a": [{"api_key": {"deep": "hunter2"}}]}, {"a": [{"api_key": MARKER}]}),
        (7, 7),
    ],
)
def test_a_credential_is_replaced_where_its_place_tells_it(value, shown):
    assert without_credentials(value) == shown

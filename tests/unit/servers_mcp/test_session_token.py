"""Who can write a session's token, and which processes open it."""

import os
import sys
from subprocess import run

import pytest
from itsdangerous import URLSafeSerializer

from rollbook.servers.http.client_settings import NUM_WORKERS_ENV_VAR_NAME
from rollbook.servers.mcp.seal_key import SEAL_KEY_ENV_VAR_NAME, seal_key
from rollbook.servers.mcp.session_token import opened, sealed
from rollbook.servers.serving.webserver import ENTRYPOINT_ENV_VAR_NAME, WORKER_ENV_VAR_NAME, worker_target
from unit.servers_core.stand_ins import configuration
from unit.servers_mcp.weather import asked, rpc, weather

KEY = "WeatherServer___weather"
WORKER = f"""
import os, sys
from rollbook.servers.mcp.session_token import opened
grant = opened("{KEY}", sys.argv[1])
print(grant and grant.session_id, "{SEAL_KEY_ENV_VAR_NAME}" in os.environ)
"""


@pytest.fixture
def workers(monkeypatch):
    """Tell workers to come who they are, for the time of a test."""
    for name in (WORKER_ENV_VAR_NAME, ENTRYPOINT_ENV_VAR_NAME, NUM_WORKERS_ENV_VAR_NAME, SEAL_KEY_ENV_VAR_NAME):
        monkeypatch.setenv(name, "")
    worker_target(configuration({"several": {"num_workers": 2}}), "several", 2)


def in_another_process(token):
    return run((sys.executable, "-c", WORKER, token), capture_output=True, text=True, check=True).stdout.split()


def test_a_token_says_its_session_and_tools():
    grant = opened("secret", sealed("secret", "s1", ["a"]))
    assert (grant.session_id, grant.allows("a"), grant.allows("b")) == ("s1", True, False)
    assert opened("secret", sealed("secret", "s1", None)).allows("anything")
    assert opened("other", sealed("secret", "s1", None)) is None


async def test_who_knows_the_names_of_server_and_session_cannot_write_a_token():
    forged = URLSafeSerializer(KEY, salt="nemo-gym-mcp-session-token").dumps({"sid": "s1", "tools": None})
    async with asked(weather().build_app()) as client:
        result = (await rpc(client, "tools/call", {"name": "forget"}, forged))["result"]
    assert result["isError"] is True


def test_a_narrowed_token_cannot_be_widened_by_what_it_says():
    narrow = sealed(KEY, "s1", ["get_weather"])
    payload, _, signature = narrow.rpartition(".")
    said = URLSafeSerializer("any", salt="any").load_payload(payload.encode())
    wide = URLSafeSerializer("any", salt="any").dump_payload({**said, "tools": None}).decode()
    assert opened(KEY, f"{wide}.{signature}") is None


@pytest.mark.usefixtures("workers")
def test_every_worker_of_a_server_opens_its_tokens_and_keeps_the_key_from_what_it_starts():
    assert os.environ[SEAL_KEY_ENV_VAR_NAME] == seal_key()
    assert in_another_process(sealed(KEY, "s1", None)) == ["s1", "False"]


def test_a_server_in_another_process_does_not_open_a_token():
    assert in_another_process(sealed(KEY, "s1", None)) == ["None", "False"]

"""Each side's server client against each side's servers, call by call."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from interop.rows import json_lines
from interop.sides import THEIR_PYTHON

SCRIPT = Path(__file__).with_name("client_calls.py")


@pytest.fixture(scope="module")
def calls(field):
    """Return a function that has a side's client make every call to a side's servers, and gives what it was told."""
    row = json.dumps(json_lines(field.rows)[0])

    def _calls(client, servers):
        python = sys.executable if client == "ours" else THEIR_PYTHON
        told = subprocess.run(
            [python, SCRIPT, client, str(field.heads[servers].port), row],
            capture_output=True,
            check=False,
            cwd=field.sides[client].folder,
            env=field.sides[client].environment,
            timeout=120,
        )
        assert told.returncode == 0, told.stderr.decode()[-3000:]
        return json.loads(told.stdout.splitlines()[-1])

    return _calls


@pytest.mark.parametrize("servers", ["ours", "theirs"])
def test_both_clients_are_told_the_same_by_the_same_servers(calls, servers):
    assert calls("ours", servers) == calls("theirs", servers)


def test_both_sides_servers_answer_a_call_with_the_same_status_and_the_same_reward(calls):
    near, far = calls("ours", "ours"), calls("theirs", "theirs")
    assert [essence(call) for call in near] == [essence(call) for call in far]
    assert {call["status"] for call in near} == {200, 404, 422}


def essence(call):
    """Return what of a reply does not follow from a class's name or the version of a library."""
    said = call["said"]
    response = said.get("response", said)
    kinds = [item["type"] for item in response.get("output", ())] if isinstance(response, dict) else None
    named = {key: said.get(key) for key in ("reward", "extracted_answer", "mask_sample", "city", "agent_metrics")}
    return call["call"], call["status"], len(call["cookies"]), kinds, named

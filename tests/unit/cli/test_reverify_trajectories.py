"""Trajectories of other programs, judged."""

import json

import pytest

from run_folder import planned, rows_of, said
from stub import lines
from verifying import SERVER, verifying

STEPS = [{"source": "user", "message": "2+2?"}, {"source": "agent", "message": "4"}]
CALL = {"tool_call_id": "c", "function_name": "add", "arguments": {}}


@pytest.fixture
def stub():
    with verifying() as running:
        yield running


class Listed:
    def __init__(self, folder, count=2, steps=STEPS):
        self.inputs, self.manifest = folder / "rows.jsonl", folder / "list.jsonl"
        self.output = folder / "out" / "v.jsonl"
        self.inputs.write_bytes(lines([planned(task) for task in range(3)]))
        rows = []
        for number in range(count):
            path = folder / f"t{number}.json"
            path.write_text(json.dumps({"schema_version": "ATIF-v1.7", "session_id": f"s{number}", "steps": steps}))
            rows.append({"trajectory_path": path.name, "_ng_task_index": number, "_ng_rollout_index": 0})
        self.manifest.write_bytes(lines(rows))

    def reverified(self, stub, *flags):
        named = ["--input-format", "atif", "--atif-manifest", self.manifest, "--inputs", self.inputs, "-o", self.output]
        command = ["eval", "reverify", "--no-serve", *map(str, named), "--retry-for", "0", *flags, *stub.overrides]
        return said(command)


def test_a_trajectory_is_judged_as_the_answer_of_its_planned_row(tmp_path, stub):
    listed = Listed(tmp_path)
    answer = listed.reverified(stub)
    assert answer.code == 0, answer.text
    sent = stub.judged[0]
    assert sent["responses_create_params"] == {"input": "add 0 and 0"}
    assert sent["response"]["output"][0]["content"][0]["text"] == "4"
    provenance = {row["_ng_task_index"]: row["_ng_atif_provenance"] for row in rows_of(listed.output)}
    assert provenance[1]["session_id"] == "s1"
    assert provenance[1]["projection_status"] == "complete"
    assert set(provenance[1]) == {"trajectory_id", "session_id", "source_sha256", "schema_version", "projection_status"}


@pytest.mark.parametrize("flag", ["--resume", "--force", "--judge-failed-only"])
def test_trajectories_are_judged_whole_and_once(tmp_path, stub, flag):
    refused = Listed(tmp_path).reverified(stub, flag)
    assert refused.code == 1
    assert stub.judged == []


def test_only_a_stateless_server_judges_them(tmp_path, stub):
    stub.mode = "unsupported"
    assert Listed(tmp_path).reverified(stub).code == 1
    assert stub.judged == []


def test_tool_calls_are_refused_where_tools_are_reached_over_mcp(tmp_path, stub):
    stub.hosting(**{SERVER: {"expose_tools_over_mcp": True}})
    assert Listed(tmp_path).reverified(stub).code == 0
    (tmp_path / "calls").mkdir()
    calling = Listed(tmp_path / "calls", steps=[{"source": "agent", "message": "", "tool_calls": [CALL]}])
    refused = calling.reverified(stub)
    assert refused.code == 1
    assert "expose_tools_over_mcp" in refused.err


def test_a_planned_row_without_an_agent_is_refused(tmp_path, stub):
    listed = Listed(tmp_path)
    listed.inputs.write_bytes(lines([planned(0) | {"agent_ref": None}, planned(1)]))
    refused = listed.reverified(stub)
    assert refused.code == 1
    assert "rows.jsonl:1" in refused.err

"""`gym eval import` and what may be asked of a run that was imported."""

import json
from pathlib import Path

import pytest

from rollbook.cli.entry import exit_code_of

LOGS = Path(__file__).parents[2] / "data" / "inspect"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def imported(tmp_path):
    output = tmp_path / "r.jsonl"
    assert exit_code_of(["eval", "import", str(LOGS / "cancelled.eval"), "--output", str(output)]) == 0
    return output


def test_an_import_tells_how_every_planned_rollout_ended(tmp_path, capsys):
    assert exit_code_of(["eval", "import", str(LOGS / "cancelled.eval"), "--output", str(tmp_path / "r.jsonl")]) == 0
    said = capsys.readouterr().out

    assert "Imported 1 inspect_ai log" in said
    assert "8 rollouts of 4 tasks" in said
    assert "2 scored, 4 failed (agent_run_error 1, cancelled 3), 2 in no log" in said


def test_an_import_is_one_json_document_on_request(tmp_path, capsys):
    words = [
        "eval",
        "import",
        str(LOGS / "scorers.json"),
        "-o",
        str(tmp_path / "r.jsonl"),
        "--scorer",
        "letters",
        "--json",
    ]
    assert exit_code_of(words) == 0

    told = json.loads(capsys.readouterr().out)
    assert (told["expected"], told["scored"], told["missing"], told["form"]) == (4, 4, 0, "inspect_ai")


def test_status_and_explain_read_an_imported_run(imported, capsys):
    assert exit_code_of(["eval", "status", str(imported), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["succeeded"] == 2
    assert exit_code_of(["eval", "explain", str(imported), "1-0"]) == 0
    assert "the sandbox is gone" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([str(LOGS / "epochs.eval")], 2, "--output"),
        (["nothing.eval", "-o", "r.jsonl"], 1, "nothing.eval: no such file"),
        ([str(LOGS / "make.py"), "-o", "r.jsonl"], 1, "no log of a known form (inspect_ai)"),
        ([str(LOGS / "scorers.json"), "-o", "r.jsonl"], 1, "say with --scorer"),
    ],
)
def test_what_cannot_be_imported_is_one_line(here, capsys, words, code, said):
    assert exit_code_of(["eval", "import", *words]) == code
    told = capsys.readouterr().err
    assert said in told
    assert "Traceback" not in told
    assert list(here.iterdir()) == []


def test_a_resume_refuses_an_imported_run_by_name(here, imported, capsys):
    row = {"responses_create_params": {"input": "?"}, "agent_ref": {"name": "example_single_tool_call_simple_agent"}}
    (here / "in.jsonl").write_text(json.dumps(row) + "\n")
    words = ["eval", "run", "--resources-server", "example_single_tool_call", "--model-type", "simulated_model"]
    code = exit_code_of([*words, "--input", "in.jsonl", "--resume", "--output", str(imported), "--retry-for", "0"])

    assert code == 1
    assert "imported from inspect_ai (cancelled.eval)" in capsys.readouterr().err


def test_two_imports_are_compared_by_what_their_tasks_say_and_their_health_is_checked(tmp_path, capsys):
    for scorer in ("match", "letters"):
        words = [str(LOGS / "scorers.json"), "-o", str(tmp_path / f"{scorer}.jsonl"), "--scorer", scorer]
        assert exit_code_of(["eval", "import", *words]) == 0
    sides = ["--baseline", str(tmp_path / "match.jsonl"), "--candidates", str(tmp_path / "letters.jsonl")]
    assert exit_code_of(["eval", "compare", *sides]) == 0
    assert "4 by content" in capsys.readouterr().out
    assert exit_code_of(["eval", "health-check", str(tmp_path), "--rollouts-file", sides[1], "--workers", "1"]) == 0
    assert "4 checked" in capsys.readouterr().out

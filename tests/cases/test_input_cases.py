"""Cases from the field about input data: each through the command line, against a scripted server."""

import contextlib
import io
import json

import pytest
from aiohttp import web

from rollbook.cli.entry import exit_code_of
from stub import AGENT, adding, lines, serving


class Outcome:
    def __init__(self, code, out, err, folder):
        self.code, self.out, self.err, self.folder = code, out, err, folder

    @property
    def text(self):
        return self.out + self.err

    def rows(self, name):
        path = self.folder / name
        return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()] if path.exists() else []

    def artifacts(self):
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
def run(tmp_path):
    def run(stub, data, *flags):
        (tmp_path / "in.jsonl").write_bytes(data)
        folder = tmp_path / "out"
        folder.mkdir(exist_ok=True)
        command = ["eval", "run", "--no-serve", "-i", str(tmp_path / "in.jsonl"), "-o", str(folder / "r.jsonl"), *flags]
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = exit_code_of([*command, *stub.overrides])
        assert "Traceback" not in out.getvalue() + err.getvalue()
        return Outcome(code, out.getvalue(), err.getvalue(), folder)

    return run


def test_rc_57_blank_lines_between_datasets_are_nobodys_task(run):
    first, second = adding(4)[:2], adding(4)[2:]
    data = lines(first) + b"\n" + lines(second) + b"   \n\n\n"
    with serving() as stub:
        outcome = run(stub, data)
    assert outcome.code == 0
    assert sorted(row["_ng_task_index"] for row in outcome.rows("r.jsonl")) == [0, 1, 2, 3]


def test_rc_57_a_broken_row_is_named_by_its_physical_line(run):
    data = lines(adding(2)) + b"\n" + lines(adding(2)) + b"   \n" + b'{"broken": \n'
    with serving() as stub:
        outcome = run(stub, data)
        assert stub.requests == []
    assert outcome.code != 0
    assert "in.jsonl:7:" in outcome.text


def test_rc_58_bom_and_crlf_change_neither_number_nor_identity_of_tasks(run):
    rows = adding(3)
    data = b"\xef\xbb\xbf" + lines(rows, "\r\n") + lines(rows[:1], "\n")
    with serving() as stub:
        outcome = run(stub, data)
        assert not any("\r" in json.dumps(row) for row in stub.requests)
    found = sorted((row["_ng_task_index"], row["_ng_rollout_index"]) for row in outcome.rows("r.jsonl"))
    assert found == [(0, 0), (0, 1), (1, 0), (2, 0)]


def as_saved_by_an_editor(path):
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))


RUN_FILES = ("r.jsonl", "r_failures.jsonl", "r_materialized_inputs.jsonl")


@pytest.mark.parametrize(
    ("edited", "removed"),
    [(RUN_FILES[:2], ()), (RUN_FILES, ("r_manifest.json", "r_manifest.log"))],
    ids=["rows of a run", "all of a folder without a manifest"],
)
def test_rc_58_artifacts_edited_elsewhere_are_resumed_without_losing_their_first_row(run, edited, removed):
    broken = "add 1 and 1"
    with serving(lambda row: failed("no") if row["responses_create_params"]["input"] == broken else None) as stub:
        outcome = run(stub, lines(adding(3)), "+route_failures_to_sidecar=true")
        for name in edited:
            as_saved_by_an_editor(outcome.folder / name)
        for name in removed:
            (outcome.folder / name).unlink()
        stub.script, before = (lambda _row: None), len(stub.requests)
        outcome = run(stub, lines(adding(3)), "--resume")
        assert [row["responses_create_params"]["input"] for row in stub.requests[before:]] == [broken]
    assert outcome.code == 0
    assert "3 of 3" in outcome.text


def test_rc_58_a_plan_edited_elsewhere_is_named_and_nothing_is_sent(run):
    with serving(lambda row: failed("no") if "add 1" in row["responses_create_params"]["input"] else None) as stub:
        outcome = run(stub, lines(adding(3)), "+route_failures_to_sidecar=true")
        as_saved_by_an_editor(outcome.folder / RUN_FILES[2])
        before = len(stub.requests)
        outcome = run(stub, lines(adding(3)), "--resume")
        assert len(stub.requests) == before
    assert outcome.code == 5
    assert "r_materialized_inputs.jsonl: not the plan" in outcome.text.replace("\n", "")


HOSTILE = "a\u0000b\u001b[31mred\rreturn\ttab"


def failed(text):
    return web.json_response({"_ng_failure_class": text, "_ng_failure_message": text})


def raw_controls(text):
    return {character for character in text if character < " "} - {"\n", "\t"}


def test_rc_61_control_characters_travel_unchanged(run):
    rows = [{"responses_create_params": {"input": HOSTILE}, "agent_ref": {"name": AGENT}, "note": HOSTILE}]
    with serving() as stub:
        outcome = run(stub, lines(rows))
        assert stub.requests[0]["responses_create_params"]["input"] == HOSTILE
    assert outcome.rows("r.jsonl")[0]["note"] == HOSTILE


def test_rc_61_a_failures_class_and_message_reach_the_terminal_as_escapes_alone(run):
    with serving(lambda row: failed(HOSTILE) if "add 1" in row["responses_create_params"]["input"] else None) as stub:
        outcome = run(stub, lines(adding(2)), "+route_failures_to_sidecar=true")
    assert outcome.code == 3
    assert outcome.rows("r_failures.jsonl")[0]["_ng_failure_message"] == HOSTILE
    assert all("\\x1b[31mred\\rreturn\\ttab" in text for text in (outcome.out, outcome.err))
    assert raw_controls(outcome.text) == set()


def test_rc_61_an_unknown_agents_name_reaches_the_terminal_as_escapes_alone(run):
    with serving() as stub:
        outcome = run(stub, lines([adding(1)[0] | {"agent_ref": {"name": HOSTILE}}]))
    assert outcome.code != 0
    assert "\\x1b[31mred" in outcome.text
    assert raw_controls(outcome.text) == set()


@pytest.mark.parametrize("key", ["_ng_task_index", "task_id"])
def test_rc_66_one_id_on_two_tasks_is_refused_before_the_first_request(run, key):
    rows = [row | {key: 3} for row in adding(2)]
    with serving() as stub:
        outcome = run(stub, lines(rows))
        assert stub.requests == []
    assert outcome.code != 0
    assert "in.jsonl:1" in outcome.text
    assert "in.jsonl:2" in outcome.text


def test_rc_66_equal_rows_with_one_id_are_repeats(run):
    row = adding(1)[0] | {"task_id": "same"}
    with serving() as stub:
        outcome = run(stub, lines([row, row]))
    found = sorted((row["_ng_task_index"], row["_ng_rollout_index"]) for row in outcome.rows("r.jsonl"))
    assert found == [(0, 0), (0, 1)]


def test_rc_68_rows_without_a_prompt_block_are_listed_together(run):
    normal, bare, null = adding(1)[0], {"agent_ref": {"name": AGENT}}, {"responses_create_params": None}
    empty = {"responses_create_params": {"input": []}, "agent_ref": {"name": AGENT}}
    with serving() as stub:
        outcome = run(stub, lines([normal, bare, null, empty]))
        assert stub.requests == []
        assert outcome.code != 0
        assert "responses_create_params" in outcome.text
        assert "in.jsonl:2, " in outcome.text
        assert "in.jsonl:3" in outcome.text
        assert "in.jsonl:1" not in outcome.text
        assert run(stub, lines([normal, empty])).code == 0
        assert stub.requests[-1]["responses_create_params"] == {"input": []}


@pytest.mark.parametrize(
    ("limit", "requests", "succeeds", "said"),
    [("0", 0, True, "nothing to do"), ("-1", 0, False, "limit"), ("1", 1, True, "1 task"), ("100", 3, True, "100")],
)
def test_rc_69_a_limit_means_what_it_says(run, limit, requests, succeeds, said):
    with serving() as stub:
        outcome = run(stub, lines(adding(3)), "--limit", limit)
        assert len(stub.requests) == requests
    assert (outcome.code == 0) is succeeds
    assert said in outcome.text


@pytest.mark.parametrize(("repeats", "requests"), [("0", None), ("-1", None), ("2.5", None), ("null", 3), ("2", 6)])
def test_rc_69_repeats_are_whole_and_at_least_one(run, repeats, requests):
    with serving() as stub:
        outcome = run(stub, lines(adding(3)), f"+num_repeats={repeats}")
        assert len(stub.requests) == (requests or 0)
    assert (outcome.code == 0) is (requests is not None)
    assert requests is not None or "num_repeats" in outcome.text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"placeholder row\n# comment\n", ["in.jsonl:1:", "in.jsonl:2:"]),
        (b"", ["holds no rows"]),
        (b'[1,2]\n"text"\n42\nnull\n', ["in.jsonl:1: expected a JSON object", "in.jsonl:4:"]),
    ],
)
def test_rc_70_a_file_without_tasks_is_an_error_and_leaves_nothing(run, data, said):
    with serving() as stub:
        outcome = run(stub, data)
        assert stub.requests == []
    assert outcome.code != 0
    assert all(words in outcome.text.replace("\n", "") for words in said)
    assert outcome.artifacts() == []

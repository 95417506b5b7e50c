"""What the command line says of a run that is gone on with: when, how often, and what can be typed."""

import json
import shlex

import pytest

from run_folder import SERVER_ERROR, RunFolder, built, replies, said, scored, status_reply
from stub import adding, serving


@pytest.fixture
def half_done(tmp_path):
    """Of three tasks, one failed once and is owed."""
    folder = RunFolder(tmp_path).asks(adding(3))
    with serving(replies({(2,): SERVER_ERROR})) as stub:
        assert folder.run(stub).code == 3
    return folder


def place_of(words, lines):
    (number,) = [number for number, line in enumerate(lines) if words in line]
    return number


def test_a_note_about_the_run_is_told_once_and_before_anything_is_sent(half_done):
    with serving() as stub:
        answer = half_done.resume(stub, "--limit", "2")
    lines = answer.err.splitlines()
    assert place_of("1 rollouts fewer", lines) < place_of("rollouts planned", lines)


def test_what_was_cut_from_a_file_is_told_before_anything_is_sent(half_done):
    with half_done.results.open("ab") as results:
        results.write(b'{"_ng_task_index": 2, "rew')
    with serving() as stub:
        answer = half_done.resume(stub)
    lines = answer.err.splitlines()
    assert place_of(".torn", lines) < place_of("rollouts planned", lines)


def test_notes_are_in_the_json_as_well(half_done):
    with serving() as stub:
        answer = half_done.resume(stub, "--limit", "2", "--json")
    assert sum("1 rollouts fewer" in note for note in json.loads(answer.out)["notes"]) == 1
    assert answer.err.count("1 rollouts fewer") == 1


def test_a_note_that_comes_after_the_work_is_told_once_too(half_done):
    with serving() as stub:
        answer = half_done.resume(stub, "--disable-aggregation")
    assert answer.err.count("aggregation is off") == 1


def status_of(folder, *flags):
    return said(["eval", "status", str(folder.output), *flags])


def test_a_run_that_owes_something_and_has_no_process_is_not_finished(half_done):
    assert "not finished: no process works on it, and something is owed" in status_of(half_done).out
    assert half_done.status()["state"] == "interrupted"


def test_a_folder_without_a_manifest_that_owes_something_is_not_finished(tmp_path):
    folder = built(tmp_path, 2, [scored(0)])
    assert "not finished: no process works on it, and something is owed" in status_of(folder).out
    assert folder.status()["state"] == "interrupted"


def test_the_command_that_a_status_gives_can_be_typed(tmp_path, monkeypatch):
    folder = RunFolder(tmp_path).asks(adding(2))
    typed_first = ["-i", str(folder.input), "-o", str(folder.output), "--retry-for", "0", "+a.api_key=sk-1"]
    with serving(replies({(1,): SERVER_ERROR})) as stub:
        words = ["eval", "run", "--no-serve", *typed_first, *stub.overrides]
        monkeypatch.setattr("sys.argv", ["gym", *words])
        assert said(words).code == 3
        told = status_of(folder).out
        (line,) = [line for line in told.splitlines() if line.startswith("Go on: ")]
        assert "Put back what <credential> stands for" in told
        stub.script = replies({})
        program, *resumed = shlex.split(line.removeprefix("Go on: ").replace("<credential>", "sk-1"))
        assert program == "gym"
        assert said(resumed).code == 0
    assert folder.status()["state"] == "finished"


def test_a_refusal_names_the_run(half_done):
    rows = adding(3)
    rows[0]["responses_create_params"]["input"] = "take 1 and 2"
    with serving() as stub:
        answer = half_done.asks(rows).resume(stub)
        assert answer.code == 1
        assert f"Error: {half_done.output}: the resume is refused: " in answer.err
        went_on = half_done.resume(stub, "+allow_unsafe_resume=true")
    assert "resumed all the same: what the answers depend on is not as it was" in went_on.err
    assert "go on anyway" not in went_on.err


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04 no text\n\xff\n", b"[1]\n"])
@pytest.mark.parametrize("words", [("status",), ("explain",)])
def test_a_file_of_no_run_is_a_mistake_in_the_command(data, words, tmp_path):
    file = tmp_path / "photo.jsonl"
    file.write_bytes(data)
    answer = said(["eval", *words, str(file)])
    assert answer.code == 2
    assert f"{file}: no run is there" in answer.err


@pytest.mark.parametrize("name", ["r_materialized_inputs.jsonl", "r_manifest.json", "r_manifest.log"])
def test_whatever_a_run_left_makes_it_one(half_done, name):
    left = {"r.jsonl", name}
    for path in half_done.folder.iterdir():
        path.unlink() if path.name not in left else None
    half_done.output.write_bytes(b"no record\n")
    answer = status_of(half_done)
    assert answer.code == 5
    assert "r.jsonl:1" in answer.out


def test_a_status_says_nothing_of_what_a_resume_would_have_left_as_it_was(half_done):
    with half_done.results.open("ab") as results:
        results.write(b"[1]\n")
    told = status_of(half_done).out
    assert "not a rollout record" in told
    assert "Nothing was changed" not in told


@pytest.mark.parametrize("below", ["x.jsonl", "a/x.jsonl"])
def test_an_output_below_a_file_is_told_to_be_one(below, tmp_path):
    folder = RunFolder(tmp_path).asks(adding(1))
    folder.output.write_bytes(b"kept\n")
    folder.output = folder.output / below
    with serving() as stub:
        answer = folder.run_unread(stub)
    assert answer.code == 1
    assert f"{folder.folder / 'r.jsonl'} is a file" in answer.err
    assert "Free the disk" not in answer.err
    assert folder.results.read_bytes() == b"kept\n"


def test_an_attempt_that_was_turned_away_is_told_to_have_never_run_and_no_more(tmp_path):
    folder = RunFolder(tmp_path).asks(adding(1))
    with serving(replies({(0, 0, 0): status_reply(503)})) as stub:
        ran = folder.run(stub, "--retry-for", "5")
    assert ran.code == 0
    assert "turned rollouts away: 503" in ran.err
    assert "they are sent again for up to 5 s (--retry-for)" in ran.err
    told = said(["eval", "explain", str(folder.output), "0", "0"]).out
    assert "never ran: " in told
    assert "followed" not in told
    assert "2 reserved, 1 of them never ran" in status_of(folder).out

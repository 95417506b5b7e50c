"""`gym eval ctl` against a run that hears in a thread beside it, and against none."""

import asyncio
import json
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from controls import ScriptedControls
from rollbook.cli.entry import exit_code_of
from rollbook.clock import SystemClock
from rollbook.ledger.paths import RunPaths
from rollbook.verbs.control import served


@pytest.fixture
def output(tmp_path):
    path = tmp_path / "r.jsonl"
    path.touch()
    return path


@contextmanager
def live(output, controls):
    """Serve a run in a thread for as long as the block lasts."""
    up, over = threading.Event(), threading.Event()

    async def run():
        async with served(RunPaths(output), controls, lambda _text: None, SystemClock()):
            up.set()
            await asyncio.to_thread(over.wait)

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    try:
        assert up.wait(30)
        yield
    finally:
        over.set()
        thread.join()


def ctl(output, *words, controls=None):
    with live(output, controls or ScriptedControls()):
        return exit_code_of(["eval", "ctl", str(output), *words])


def test_status_prints_the_limit_what_is_in_flight_and_what_waits(output, capsys):
    assert ctl(output, "status") == 0
    assert capsys.readouterr().out == (
        "4/10 ended · 1 in flight · limit 64\n"
        "waiting longest:\n"
        "  3-0  12.5 s · waiting for the reply · env · 127.0.0.1:8000\n"
    )


@pytest.mark.parametrize(
    ("words", "told", "said"),
    [
        (["concurrency", "8"], [("limit", 8)], "concurrency set to 8\n4/10 ended · 1 in flight · limit 8\n"),
        (
            ["concurrency", "auto"],
            [("limit", None)],
            "concurrency is found by the run again\n4/10 ended · 1 in flight · no limit\n",
        ),
        (["pause"], [("pause",)], "paused\n4/10 ended · 1 in flight · limit 64 · paused\n"),
        (["resume"], [("resume",)], "resumed\n4/10 ended · 1 in flight · limit 64\n"),
        (
            ["drain"],
            [("drain", "drained by ctl")],
            "draining\n4/10 ended · 1 in flight · limit 64 · draining · stopped: drained by ctl\n",
        ),
    ],
)
def test_a_command_reaches_the_run_and_its_answer_is_printed(words, told, said, output, capsys):
    controls = ScriptedControls()
    assert ctl(output, *words, controls=controls) == 0
    assert controls.told == told
    assert capsys.readouterr().out == said


def test_a_rollout_that_was_not_in_flight_ends_with_1(output, capsys):
    assert ctl(output, "requeue", "3-0", "9-1") == 1
    assert capsys.readouterr().out.splitlines()[:2] == ["requeued 3-0 (attempt 2)", "9-1: not in flight"]


def test_rollouts_that_were_all_in_flight_end_with_0(output):
    assert ctl(output, "requeue", "3-0") == 0


def test_json_is_one_document_in_which_a_rollout_is_one_word(output, capsys):
    assert ctl(output, "requeue", "3-0", "--json") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["requeued"] == [{"key": "3-0", "attempt": 2, "why": ""}]
    assert answer["status"]["waiting"][0]["key"] == "3-0"
    assert answer["error"] is None


def test_text_of_the_run_cannot_drive_the_terminal(output, capsys):
    class Hostile(ScriptedControls):
        def status(self):
            return type(super().status())(in_flight=0, stop_reason="\x1b[2J")

    assert ctl(output, "status", controls=Hostile()) == 0
    assert "\x1b" not in capsys.readouterr().out


def test_where_no_run_is_live_an_error_says_so(output, capsys):
    assert exit_code_of(["eval", "ctl", str(output), "status"]) == 1
    said = capsys.readouterr().err
    assert f"Error: {output}: no run is live here" in said
    assert f"gym eval status {output}" in said


@pytest.mark.parametrize(("typed", "meant"), [("statu", "status"), ("pauze", "pause"), ("drian", "drain")])
def test_the_command_that_a_mistyped_one_comes_close_to_is_named(typed, meant, output, capsys):
    assert exit_code_of(["eval", "ctl", str(output), typed]) == 2
    assert f"Did you mean `{meant}`?" in capsys.readouterr().err


def test_a_status_says_how_many_wait_to_be_sent_again(output, capsys):
    class Refused(ScriptedControls):
        def status(self):
            return replace(super().status(), again=7)

    assert ctl(output, "status", controls=Refused()) == 0
    assert "1 in flight · 7 to be sent again · limit 64" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["stop"],
        ["concurrency"],
        ["concurrency", "0"],
        ["concurrency", "many"],
        ["concurrency", "auto", "4"],
        ["concurrency", "1", "2"],
        ["concurrency", "٣"],
        ["pause", "now"],
        ["requeue"],
        ["requeue", "3"],
        ["requeue", "3-0", "x-1"],
        ["requeue", *["1-0"] * 65],
    ],
)
def test_what_cannot_be_meant_is_a_mistake_in_the_command_line(words, output):
    assert exit_code_of(["eval", "ctl", str(output), *words]) == 2


def test_a_word_that_names_no_run_is_a_mistake_in_the_command_line(tmp_path):
    assert exit_code_of(["eval", "ctl", str(tmp_path / "none.jsonl"), "status"]) == 2


def test_a_companion_or_a_link_stands_for_its_run(output, tmp_path):
    RunPaths(output).materialized_inputs.touch()
    link = tmp_path / "elsewhere" / "link.jsonl"
    link.parent.mkdir()
    link.symlink_to(output)
    with live(output, ScriptedControls()):
        for word in (RunPaths(output).materialized_inputs, link):
            assert exit_code_of(["eval", "ctl", str(word), "status"]) == 0


def test_help_imports_no_engine():
    code = (
        "import sys\n"
        "from rollbook.cli.entry import exit_code_of\n"
        "exit_code_of(['eval', 'ctl', '--help'])\n"
        "print([name for name in ('asyncio', 'msgspec', 'pydantic') if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1] == "[]"

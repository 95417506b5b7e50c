"""`gym eval run` from end to end: what goes to which stream, and what a bad input leaves behind."""

import json
import signal
import subprocess
import sys
import time

import pytest

MCQA = ("eval", "run", "--resources-server", "mcqa", "--model-type", "simulated_model")


def gym(here, *arguments):
    command = [sys.executable, "-m", "rollbook.cli", *arguments]
    return subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=300, check=False)


def results_of(folder):
    return [json.loads(line) for line in (folder / "r.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    return tmp_path_factory.mktemp("evaluation")


@pytest.fixture(scope="module")
def reported(here):
    return gym(here, *MCQA, "--num-repeats", "2", "--output", "out/r.jsonl", "--json")


def test_json_is_the_only_thing_on_standard_output(reported, here):
    assert reported.returncode == 0, reported.stderr
    report = json.loads(reported.stdout)
    assert str(here / "out" / "r.jsonl").endswith(report["files"]["rollouts"])


def test_progress_goes_to_standard_error_in_whole_lines(reported):
    assert "\r" not in reported.stderr
    assert "\x1b" not in reported.stderr


def test_the_last_progress_line_says_what_the_artifacts_hold(reported, here):
    rows = results_of(here / "out")
    (last,) = [text for text in reported.stderr.splitlines() if "ended after" in text]
    mean = sum(row["reward"] for row in rows) / len(rows)
    assert last.startswith(f"{len(rows)}/{len(rows)} finished (100%) · mean reward {mean:.3f} over {len(rows)}")


def test_the_plan_is_told_before_the_first_request(reported):
    told = [text for text in reported.stderr.splitlines() if "rollouts planned" in text]
    assert len(told) == 1


def test_text_says_the_score_what_it_covers_and_where_the_files_are(reported, here):
    done = gym(here, *MCQA, "--limit", "2", "--output", "text/r.jsonl")
    assert done.returncode == 0, done.stderr
    assert "2 of 2" in done.stdout
    assert "text/r.jsonl" in done.stdout
    assert "\x1b" not in done.stdout


def test_overwriting_replaces_the_earlier_run(here):
    first = gym(here, *MCQA, "--limit", "1", "--output", "over/r.jsonl")
    again = gym(here, *MCQA, "--limit", "2", "--output", "over/r.jsonl", "--overwrite")
    assert (first.returncode, again.returncode) == (0, 0)
    assert len(results_of(here / "over")) == 2


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ("placeholder row\n", "bad.jsonl:1"),
        ('[1, 2]\n"text"\n42\nnull\n', "bad.jsonl:4"),
        ("", "holds no rows"),
    ],
)
def test_a_bad_dataset_is_named_and_leaves_no_run(rows, what, tmp_path):
    (tmp_path / "bad.jsonl").write_text(rows, encoding="utf-8")
    done = gym(tmp_path, *MCQA, "--input", "bad.jsonl", "--output", "out/r.jsonl")
    assert done.returncode == 1
    assert what in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.rglob("*") if path.suffix in {".jsonl", ".json"}] == ["bad.jsonl"]


def test_a_limit_of_zero_runs_nothing_and_says_so(tmp_path):
    done = gym(tmp_path, *MCQA, "--limit", "0", "--output", "out/r.jsonl")
    assert done.returncode == 0
    assert "nothing to do" in done.stderr
    assert not (tmp_path / "out" / "r.jsonl").exists()


def numbers_in(events, *kinds):
    flat = [number for event in events if event["t"] in kinds for number in event["a"]]
    return sorted(zip(flat[::3], flat[1::3], flat[2::3], strict=True))


def test_an_interrupted_run_says_where_its_results_are_and_how_to_go_on(tmp_path):
    output = tmp_path / "r.jsonl"
    slow = "++policy_model.responses_api_models.simulated_model.latency={distribution: constant, mean_seconds: 30}"
    command = [sys.executable, "-m", "rollbook.cli", "eval", "run", "--resources-server", "mcqa"]
    command += ["--model-type", "simulated_model", "-o", str(output), "--grace", "0", slow]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        told = iter(process.stderr.readline, "")
        assert any("rollouts planned" in line for line in told)
        log = tmp_path / "r_manifest.log"
        while not (log.exists() and b'"reserve"' in log.read_bytes()):
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert str(output) in rest
    assert rest.rstrip().endswith("--resume")
    assert "Traceback" not in rest
    events = [json.loads(line) for line in log.read_bytes().splitlines()]
    assert numbers_in(events, "reserve") == numbers_in(events, "cut", "refused")
    assert [event["t"] for event in events if event["t"] in {"open", "stop", "close"}] == ["open", "stop", "close"]

"""What a person gets wrong, each with a message, an exit code, and nothing half-written."""

import contextlib
import io
import json
import socket

import pytest

from rollbook.cli.entry import exit_code_of

ROW = {"responses_create_params": {"input": "What?"}, "options": [{"A": "x"}, {"B": "y"}], "expected_answer": "A"}
SIMULATED = ["--resources-server", "mcqa", "--model-type", "simulated_model"]
PORT_OF_MODEL = "++policy_model.responses_api_models.simulated_model.port"


@pytest.fixture
def gym(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.jsonl").write_text(json.dumps(ROW) + "\n")

    def gym(*words, data=None):
        if data is not None:
            (tmp_path / "in.jsonl").write_bytes(data)
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = exit_code_of(["eval", "run", "-i", "in.jsonl", "-o", "out/r.jsonl", *words])
        text = out.getvalue() + err.getvalue()
        assert "Traceback" not in text
        return code, " ".join(text.split())

    return gym


def left_behind(folder):
    return sorted(path.name for path in folder.glob("out/*"))


def config(folder, text):
    path = folder / "c.yaml"
    path.write_text(text)
    return ["--config", str(path)]


def dying_server(folder):
    server = folder / "roots" / "resources_servers" / "dying"
    (server / "configs").mkdir(parents=True)
    (server / "app.py").write_text("raise SystemExit('no licence file found')\n")
    (server / "configs" / "dying.yaml").write_text(
        "dying:\n  resources_servers:\n    dying: {entrypoint: app.py, domain: other}\n"
        "dying_simple_agent:\n  responses_api_agents:\n    simple_agent:\n      entrypoint: app.py\n"
        "      resources_server: {type: resources_servers, name: dying}\n"
        "      model_server: {type: responses_api_models, name: policy_model}\n"
    )
    return ["--search-dir", str(folder / "roots"), "--resources-server", "dying", "--model-type", "simulated_model"]


@pytest.mark.parametrize(
    ("words", "data", "said"),
    [
        (SIMULATED, b'{"a": 1}\n{broken\n', "in.jsonl:2:"),
        (SIMULATED, b"", "holds no rows"),
        ([*SIMULATED, "--agent", "mcqa_simple_agnt"], None, "Did you mean `mcqa_simple_agent`"),
        (["--resources-server", "mcqqa", "--model-type", "simulated_model"], None, "mcqa"),
        (["--environment", "nothing_like_it", "--model-type", "simulated_model"], None, "nothing_like_it"),
        (["--resources-server", "mcqa", "--model-type", "openai_model"], None, "policy_base_url"),
        ([*SIMULATED, "+num_samples_in_parallel=many"], None, "num_samples_in_parallel"),
        ([*SIMULATED, "--no-such-flag"], None, "--no-such-flag"),
    ],
    ids=["malformed line", "empty file", "agent", "resources server", "environment", "missing key", "type", "flag"],
)
def test_a_fault_of_the_command_is_one_message_and_leaves_nothing(gym, tmp_path, words, data, said):
    code, text = gym(*words, data=data)
    assert code in {1, 2}
    assert said in text
    assert left_behind(tmp_path) == []


def test_a_missing_row_key_is_a_failure_row_with_the_servers_answer(gym, tmp_path):
    row = {key: value for key, value in ROW.items() if key != "expected_answer"}
    code, text = gym(*SIMULATED, data=json.dumps(row).encode() + b"\n")
    assert code == 3
    assert "None of the 1 dispatched rollouts" in text
    saved = json.loads((tmp_path / "out" / "r_failures.jsonl").read_text())
    assert "expected_answer" in saved["_ng_failure_response_body"]


def test_a_missing_dataset_names_the_flag(gym, tmp_path):
    code, text = gym(*SIMULATED, "-i", "nowhere.jsonl")
    assert code == 1
    assert "nowhere.jsonl" in text
    assert "--input" in text


def test_configurations_that_include_each_other_are_named(gym, tmp_path):
    (tmp_path / "a.yaml").write_text("config_paths: [b.yaml]\n")
    (tmp_path / "b.yaml").write_text("config_paths: [a.yaml]\n")
    code, text = gym("--config", "a.yaml", *SIMULATED)
    assert code == 1
    assert "a.yaml" in text
    assert "b.yaml" in text
    assert left_behind(tmp_path) == []


@pytest.mark.parametrize("said", ["c.yaml", "line 2"])
def test_malformed_yaml_is_named_by_file_and_line(gym, tmp_path, said):
    code, text = gym(*config(tmp_path, "a: 1\n  b: [\n"), *SIMULATED)
    assert code == 1
    assert said in text


@pytest.mark.parametrize("serve", ["embedded", "processes"])
def test_a_server_that_dies_at_start_is_named_with_its_last_words(gym, tmp_path, serve):
    code, text = gym(*dying_server(tmp_path), "--serve", serve)
    assert code == 1
    assert "dying" in text
    assert "no licence file found" in text
    assert left_behind(tmp_path) in ([], ["r_logs"])


def test_a_taken_port_is_named_before_anything_starts(gym, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, text = gym(*SIMULATED, f"{PORT_OF_MODEL}={port}", "--serve", "processes")
    assert code == 1
    assert str(port) in text
    assert left_behind(tmp_path) in ([], ["r_logs"])


@pytest.mark.parametrize("serve", ["embedded", "processes"])
def test_an_absent_model_endpoint_is_named(gym, tmp_path, serve):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}/v1"
    words = ["--model-url", url, "--model-api-key", "k3y-of-mine", "-m", "tiny", "--serve", serve]
    code, text = gym(
        *["--resources-server", "mcqa", "--model-type", "openai_model", *words],
        "++model_endpoint_readiness_timeout_seconds=1",
    )
    assert code == 1
    assert url in text
    assert "k3y-of-mine" not in text
    assert left_behind(tmp_path) in ([], ["r_logs"])


def test_an_output_that_is_there_is_never_touched_unasked(gym, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "r.jsonl").write_text('{"reward":1.0}\n')
    (tmp_path / "out" / "r_materialized_inputs.jsonl").write_text("{}\n")
    code, text = gym(*SIMULATED)
    assert code == 1
    assert "--resume" in text
    assert "--overwrite" in text
    assert (tmp_path / "out" / "r.jsonl").read_text() == '{"reward":1.0}\n'


def test_no_head_server_is_a_message_that_says_what_to_type(gym, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code, text = gym("--no-serve", "+head_server.host=127.0.0.1", f"+head_server.port={port}")
    assert code == 1
    assert "gym env start" in text
    assert left_behind(tmp_path) == []

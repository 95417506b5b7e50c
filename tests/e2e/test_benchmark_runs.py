"""`gym eval run --benchmark`: prepared where it is missing, served, collected and scored, several at a time."""

import csv
import json
from collections import defaultdict

import pytest

from rollbook.cli.entry import exit_code_of

AT_ONCE = "++policy_model.responses_api_models.simulated_model.latency.mean_seconds=0"
MODEL = ("--model-type", "simulated_model", "--retry-for", "0", "--concurrency", "8", AT_ONCE)
LATIN = """
group_latin:
  resources_servers:
    mcqa:
      entrypoint: app.py
      domain: knowledge
      grading_mode: strict_single_letter_boxed
      datasets:
      - name: latin
        type: benchmark
        jsonl_fpath: benchmarks/group/latin/latin.jsonl
        prepare_script: benchmarks/group/latin/prepare.py
        num_repeats: 2
group_latin_simple_agent:
  responses_api_agents:
    simple_agent:
      entrypoint: app.py
      resources_server: {type: resources_servers, name: group_latin}
      model_server: {type: responses_api_models, name: policy_model}
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROLLBOOK_BENCHMARK_FILES", str(tmp_path))
    tests = tmp_path / "mmlu" / "test"
    tests.mkdir(parents=True)
    with (tests / "sums_test.csv").open("w", newline="") as file:
        for number in range(12):
            csv.writer(file).writerow([f"{number} and 1?", number, number + 1, number + 2, number + 3, "B"])
    return tmp_path


@pytest.fixture
def nested(here):
    folder = here / "benchmarks" / "group" / "latin"
    folder.mkdir(parents=True)
    (folder / "strict.yaml").write_text(LATIN)
    (folder / "prepare.py").write_text("def prepare():\n    raise SystemExit('its rows are there')\n")
    row = {
        "responses_create_params": {"input": [{"role": "user", "content": "Water? \\boxed{}\nA: aqua\nB: ignis"}]},
        "options": [{"A": "aqua"}, {"B": "ignis"}],
        "expected_answer": "A",
    }
    (folder / "latin.jsonl").write_text(json.dumps(row) + "\n")


def rows_of(here, name):
    return [json.loads(line) for line in (here / "out" / f"{name}.jsonl").read_bytes().splitlines()]


def test_benchmarks_are_prepared_where_missing_and_run_together(here, nested, capsys):
    selected = ("--benchmark", "mmlu", "--benchmark", "group/latin/strict")
    rows = ("+prepare_script_args.expected_rows=0", "--num-repeats", "2", "-o", "out/both.jsonl")
    assert exit_code_of(["eval", "run", *selected, *MODEL, *rows]) == 0
    err = capsys.readouterr().err
    prepared = here / "cache" / "benchmarks" / "mmlu" / "mmlu.jsonl"
    assert f"mmlu is prepared: 12 rows, {prepared}" in err
    assert "latin is prepared" not in err
    rewards = defaultdict(list)
    for row in rows_of(here, "both"):
        rewards[row["agent_ref"]["name"]].append(row["reward"])
    counts = {name: len(given) for name, given in rewards.items()}
    assert counts == {"mmlu_simple_agent": 24, "group_latin_simple_agent": 4}
    assert {*rewards["mmlu_simple_agent"]} == {0.0, 1.0}


def test_data_that_cannot_be_prepared_end_the_run_with_what_to_type(here, capsys):
    options = ("+prepare_script_args.source=nowhere", "-o", "out/none.jsonl")
    assert exit_code_of(["eval", "run", "--benchmark", "mmlu", *MODEL, *options]) == 1
    err = capsys.readouterr().err
    assert "mmlu: there is no nowhere; its file is that of https://people.eecs.berkeley.edu/~hendrycks/data.tar" in err
    assert "gym eval prepare --benchmark mmlu" in err
    assert not (here / "out").exists()

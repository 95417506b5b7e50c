"""`gym env init`, edit nothing, `gym env validate`, `gym env test`, `gym eval run`: for each profile and each kind."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rollbook.cli.entry import exit_code_of
from rollbook.config.catalog import Shelf, shelf_entries
from rollbook.config.manifest import MANIFEST_FILE, NEEDED_BY_PROFILE, read_manifest
from rollbook.verbs.component_suites import suite_environment
from rollbook.verbs.example_data import example_problems
from rollbook.verbs.scaffold import Target, Wanted
from rollbook.verbs.scaffold_reuse import as_reused

PROFILES = [*NEEDED_BY_PROFILE]
SHELVES = ("resources_servers", "responses_api_agents", "environments", "benchmarks")


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Run the command line in this process, in an empty folder; return its exit code, and what it wrote."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    before, path = set(sys.modules), list(sys.path)

    def call(*arguments):
        code = exit_code_of([str(argument) for argument in arguments])
        return code, *capsys.readouterr()

    yield call
    sys.path[:] = path
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None) or ""
        if name.partition(".")[0] in SHELVES and (not file or file.startswith(str(tmp_path))):
            del sys.modules[name]


def ok(answer):
    code, out, err = answer
    assert code == 0, f"{out}\n{err}"
    return out


def rewards(path):
    return [json.loads(line)["reward"] for line in Path(path).read_text().splitlines()]


def run(said, *selector):
    flags = ("--model-type", "simulated_model", "-o", "out/r.jsonl", "--retry-for", "0", "--no-health-check")
    ok(said("eval", "run", *selector, *flags))
    return rewards("out/r.jsonl")


@pytest.mark.parametrize("profile", PROFILES)
def test_an_environment_works_as_it_is_written(said, profile):
    ok(said("env", "init", "--environment", "sums", "--profile", profile))
    assert ok(said("env", "validate", "sums", "--strict")).endswith("sums: valid\n")
    ok(said("env", "test", "sums"))
    assert set(run(said, "--environment", "sums")) == {0.0, 1.0}
    ok(said("env", "publish", "sums"))


def test_a_driver_that_leaves_the_process_is_a_finding_beside_the_others(said, tmp_path):
    ok(said("env", "init", "--environment", "sums", "--profile", "external-rollout-driver"))
    with (tmp_path / "environments/sums/driver.py").open("a") as driver:
        driver.write("raise SystemExit(0)\n")
    code, out, _ = said("env", "validate", "sums")
    assert code == 1
    assert "✗ driver" in out
    assert "left the process (0)" in out
    assert out.endswith("sums: not valid\n")


@pytest.mark.parametrize("profile", PROFILES)
def test_a_benchmark_works_as_it_is_written_once_its_rows_are_prepared(said, profile):
    ok(said("env", "init", "--benchmark", "sums", "--profile", profile))
    ok(said("eval", "prepare", "--benchmark", "sums"))
    assert ok(said("env", "validate", "sums", "--strict")).endswith("sums: valid\n")
    given = run(said, "--benchmark", "sums")
    assert (set(given), len(given)) == ({0.0, 1.0}, 10)


def test_a_resources_server_works_as_it_is_written_and_rewards_as_its_range_says(said):
    scale = ("--reward-range", "-1", "0.5", "--lower-is-better")
    printed = ok(said("env", "init", "--resources-server", "sums", *scale))
    for step in printed.partition("next:\n")[2].splitlines():
        ok(said(*step.split()[1:]))
    ok(said("env", "test", "sums"))
    assert json.loads(ok(said("env", "schema", "--resources-server", "sums")))["required"] == ["expected_answer"]
    assert set(run(said, "--resources-server", "sums")) == {-1.0, 0.5}
    ok(said("env", "init", "--environment", "over", "--reuse-verifier", "sums", *scale))
    assert ok(said("env", "validate", "over", "--strict")).endswith("over: valid\n")


def test_the_tests_of_what_is_written_can_fail(said, tmp_path):
    ok(said("env", "init", "--environment", "two", "--profile", "external-agent-loop"))
    loop = tmp_path / "responses_api_agents" / "two_agent" / "app.py"
    loop.write_text(loop.read_text().replace("if process.returncode:", "if False:"))
    code, out, _ = said("env", "test", "--agent-type", "two_agent", "--json")
    [suite] = json.loads(out)["suites"]
    assert (code, suite["passed"], suite["failed"]) == (1, 2, 1)


def test_the_tests_of_what_is_written_pass(said, tmp_path):
    """One process runs all of them, where `gym env test` would start one for each."""
    ok(said("env", "init", "--benchmark", "one", "--profile", "custom-gym-agent-loop"))
    folders = ["resources_servers/one", "responses_api_agents/one_agent", "benchmarks/one"]
    options = ["-q", "-p", "no:cacheprovider", "--import-mode=importlib", "--rootdir", str(tmp_path)]
    command = [sys.executable, "-m", "pytest", *options, *(f"{folder}/tests" for folder in folders)]
    env = suite_environment(None)
    ran = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False)
    assert "11 passed" in ran.stdout, ran.stdout


@pytest.mark.parametrize("profile", ["custom-gym-verifier", "custom-gym-agent-loop", "external-rollout-driver"])
def test_a_verifier_of_the_shelf_can_be_taken(said, profile):
    ok(said("env", "init", "--environment", "mine", "--reuse-verifier", "string_match", "--profile", profile))
    assert "mine: valid" in ok(said("env", "validate", "mine"))
    assert len(run(said, "--environment", "mine")) == 5


def test_rewards_and_licence_are_those_of_the_verifier_that_is_taken_unless_they_are_said(said):
    ok(said("env", "init", "--environment", "mine", "--reuse-verifier", "wordle"))
    assert ok(said("env", "validate", "mine", "--strict")).endswith("mine: valid\n")
    ok(said("env", "init", "--environment", "other", "--reuse-verifier", "wordle", "--reward-range", "0", "2"))
    assert "an end of the range" in said("env", "validate", "other")[1]


@pytest.mark.parametrize("verifier", ["wordle", "blackjack"])
def test_a_benchmark_over_a_verifier_has_its_examples_and_works_as_it_is_written(said, verifier):
    ok(said("env", "init", "--benchmark", "mine", "--reuse-verifier", verifier))
    ok(said("eval", "prepare", "--benchmark", "mine"))
    assert ok(said("env", "validate", "mine", "--strict")).endswith("mine: valid\n")
    rows = [json.loads(line) for line in Path("benchmarks/mine/data/mine.jsonl").read_text().splitlines()]
    assert len(rows) == 5
    assert not any("agent_ref" in row for row in rows)
    ok(said("env", "test", "--benchmark", "mine"))
    assert len(run(said, "--benchmark", "mine")) == 5
    assert "mine: already up to date" in ok(said("env", "init", "--benchmark", "mine", "--reuse-verifier", verifier))


def test_every_environment_of_the_shelf_lends_its_rewards_and_licence():
    own = {entry.name: read_manifest(entry.path / MANIFEST_FILE) for entry in shelf_entries(Shelf.ENVIRONMENT)}
    assert {*own} >= {"blackjack", "wordle", "office", "mcqa"}
    for name, manifest in own.items():
        lent = as_reused(Wanted(Target.ENVIRONMENT, "mine", reuse=name), None, higher_is_better=None)
        assert ((lent.low, lent.high), lent.higher_is_better) == (
            manifest.reward.range,
            manifest.reward.higher_is_better,
        )
        assert lent.licensing == manifest.licensing


@pytest.mark.parametrize("metrics", [None, '{"Number of examples": 3}', "{broken", "\udcff"])
def test_what_an_environments_metrics_lack_is_cured_by_the_command_that_is_told(said, metrics):
    ok(said("env", "init", "--resources-server", "sums"))
    folder = Path("resources_servers/sums").absolute()
    if metrics is not None:
        (folder / "data/example_metrics.json").write_text(metrics, errors="surrogateescape")
    _, told = example_problems(folder)
    command = re.search(r"; gym (.+) writes it$", told)[1]
    ok(said(*command.split()))
    assert [problem for problem in example_problems(folder) if "metrics" in problem] == []


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_second_call_changes_nothing_and_says_so(said, tmp_path):
    ok(said("env", "init", "--environment", "sums"))
    before = tree(tmp_path)
    assert "sums: already up to date" in ok(said("env", "init", "--environment", "sums"))
    assert tree(tmp_path) == before


def test_a_file_that_is_missing_is_written_again_and_the_others_are_left(said, tmp_path):
    ok(said("env", "init", "--environment", "sums"))
    readme = tmp_path / "environments" / "sums" / "README.md"
    text = readme.read_bytes()
    readme.unlink()
    assert "wrote environments/sums/README.md\nnext:" in ok(said("env", "init", "--environment", "sums"))
    assert readme.read_bytes() == text


def test_files_that_were_edited_are_named_and_nothing_is_written(said, tmp_path):
    ok(said("env", "init", "--environment", "sums"))
    edited = [tmp_path / "environments/sums/README.md", tmp_path / "resources_servers/sums/app.py"]
    for path in edited:
        path.write_text("mine\n")
    (tmp_path / "environments/sums/config.yaml").unlink()
    before = tree(tmp_path)
    code, _, err = said("env", "init", "--environment", "sums")
    assert code == 1
    assert all(str(path) in err for path in edited)
    assert "manifest.yaml" not in err
    assert tree(tmp_path) == before


def test_a_resources_server_that_was_edited_is_left_as_it_is(said, tmp_path):
    ok(said("env", "init", "--resources-server", "sums"))
    (tmp_path / "resources_servers/sums/app.py").write_text("mine\n")
    before = tree(tmp_path)
    assert "is there already and was left as it is" in ok(said("env", "init", "--resources-server", "sums"))
    assert tree(tmp_path) == before


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--environment", "../up"], "'../up' cannot be the name of a folder of Python code; write letters"),
        (["--environment", "a/b"], "'a/b' cannot be the name"),
        (["--environment", "a\\b"], "cannot be the name"),
        (["--environment", ""], "'' cannot be the name"),
        (["--environment", "a-b"], "'a-b' cannot be the name"),
        *((["--environment", name], "is no text in YAML but") for name in ("no", "ON", "true", "Null")),
        (["--environment", "class"], "'class' cannot be the name"),
        (["--environment", "ä" * 3], "cannot be the name"),
        (["--environment", "config_paths"], "'config_paths' has a meaning of its own in configurations"),
        (["--environment", "mcqa"], "mcqa is there already: "),
        (["--resources-server", "mcqa"], "choose another name, or --reuse-verifier mcqa"),
        (
            ["--environment", "x", "--reward-range", "1", "0"],
            "--reward-range 1 0: write two numbers, the lower one first",
        ),
        (["--environment", "x", "--reward-range", "nan", "1"], "write two numbers"),
        (["--environment", "x", "--reward-range", "0", "inf"], "write two numbers"),
        (["--environment", "x", "--reuse-verifier", "nobody"], "there is no resources_servers/nobody"),
        (["--environment", "x", "--reuse-verifier", "../../etc"], "--resource"),
        (["--resources-server", "x", "--reuse-verifier", "mcqa"], "a resources server is a verifier itself"),
        (["--resources-server", "x", "--profile", "external-agent-loop"], "it says who acts, not who judges"),
        (["--environment", "x", "--benchmark", "y"], "say what to make: one of"),
        ([], "say what to make: one of --resources-server, --environment, --benchmark"),
    ],
)
def test_what_cannot_be_made_is_a_usage_error_and_writes_nothing(said, tmp_path, flags, words):
    code, _, err = said("env", "init", *flags)
    assert code == 2
    assert words in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["path", "base", "row", "x", "A1_b", "None_", "value_error"])
def test_a_name_of_what_the_files_import_makes_a_verifier_that_loads(said, name):
    ok(said("env", "init", "--resources-server", name))
    ok(said("env", "test", name))


def test_a_file_in_the_way_is_named_and_nothing_is_written(said, tmp_path):
    (tmp_path / "environments").write_text("no folder\n")
    code, _, err = said("env", "init", "--environment", "sums")
    assert code == 1
    assert "environments is a file where a folder is needed" in err
    assert not (tmp_path / "resources_servers").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is read-only to the superuser")
def test_a_folder_that_cannot_be_written_is_named_and_stays_empty(said, tmp_path):
    tmp_path.chmod(0o500)
    code, _, err = said("env", "init", "--environment", "sums")
    tmp_path.chmod(0o700)
    assert code == 1
    assert "Permission denied" in err
    assert list(tmp_path.iterdir()) == []


def test_files_go_below_the_first_search_dir_and_never_into_a_shelf(said, tmp_path):
    (tmp_path / "mine").mkdir()
    ok(said("env", "init", "--environment", "sums", "--search-dir", "mine"))
    assert {path.name for path in tmp_path.iterdir()} == {"mine"}
    assert "sums: valid" in ok(said("env", "validate", "sums", "--search-dir", "mine"))
    code, _, err = said("env", "init", "--environment", "more", "--search-dir", "mine/environments")
    assert code == 1
    assert f"go to {tmp_path / 'mine'}" in err

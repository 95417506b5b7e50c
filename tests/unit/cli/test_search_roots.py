"""Components of a search root: found by name, served here or in an environment of their own, and tested."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rollbook.cli.entry import exit_code_of

FIELD = Path(__file__).parents[2] / "data" / "field_components"
REAL = "ROLLBOOK_TEST_ISOLATION"
CASES = "resources_servers/count_letters/tests/verifier_cases.jsonl"


def gym(here, *arguments, seconds=300, **variables):
    command = [sys.executable, "-m", "rollbook.cli", *arguments]
    env = {**os.environ, "NEMO_GYM_EXTRA_ROOTS": "", **variables}
    return subprocess.run(command, cwd=here, capture_output=True, text=True, timeout=seconds, check=False, env=env)


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    """Run the command line in this process; return its exit code, and what it wrote."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    before = set(sys.modules)

    def call(*arguments):
        code = exit_code_of(arguments)
        return code, *capsys.readouterr()

    yield call
    for name in {name for name in sys.modules if name.startswith("resources_servers.count_letters")} - before:
        del sys.modules[name]


def run(here, *arguments, root=FIELD, **options):
    flags = ("--model-type", "simulated_model", "--output", "out/r.jsonl", "--retry-for", "0", "--json")
    return gym(here, "eval", "run", "--search-dir", str(root), *flags, *arguments, **options)


def rewards(folder):
    rows = map(json.loads, (folder / "r.jsonl").read_text().splitlines())
    return {row["_ng_task_index"]: (row["reward"], row["counted"]) for row in rows}


def with_requirement(tmp_path, line):
    """Copy the components, with one more requirement, and return the copy's root and the server's folder."""
    root = tmp_path / "root"
    for source in FIELD.rglob("*"):
        target = root / source.relative_to(FIELD)
        if source.is_dir():
            target.mkdir(parents=True, exist_ok=True)
        elif source.suffix != ".pyc":
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    server = root / "resources_servers" / "count_letters"
    with (server / "requirements.txt").open("a") as file:
        file.write(line + "\n")
    return root, server


def test_code_for_the_fields_names_is_found_by_name_and_served_here(tmp_path):
    done = run(tmp_path, "--environment", "count_letters")
    assert done.returncode == 0, done.stderr
    assert rewards(tmp_path / "out") == {0: (0.0, 10), 1: (1.0, 3), 2: (1.0, 1), 3: (1.0, 2), 4: (1.0, 2)}


def test_the_extra_roots_of_the_environment_are_searched_alike(said, monkeypatch):
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", str(FIELD))
    _, out, _ = said("list", "environments", "count_letters", "--json")
    assert [entry["description"] for entry in json.loads(out)] == ["How often a letter is in a word"]


def test_a_server_whose_packages_are_missing_runs_in_its_environment_with_the_same_rewards(tmp_path, said):
    root, server = with_requirement(tmp_path, "surely-missing>=2")
    python = server / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    done = run(tmp_path, "--environment", "count_letters", "--isolate", "++skip_venv_if_present=true", root=root)
    assert done.returncode == 0, done.stderr
    assert rewards(tmp_path / "out") == {0: (0.0, 10), 1: (1.0, 3), 2: (1.0, 1), 3: (1.0, 2), 4: (1.0, 2)}
    assert [path.name for path in (tmp_path / "out" / "r_logs").iterdir()] == ["count_letters.log"]
    flags = ("--search-dir", str(root), "--environment", "count_letters", "++skip_venv_if_present=true", "--json")
    _, out, err = said("env", "prefetch", *flags)
    assert json.loads(out)["interpreters"] == {"count_letters": str(python)}, err


def test_missing_packages_are_an_error_with_the_ways_out(tmp_path, said):
    root, _ = with_requirement(tmp_path, "surely-missing>=2")
    code, _, err = said("env", "test", "--search-dir", str(root), "--resources-server", "count_letters")
    assert code == 1
    assert "count_letters asks for surely-missing>=2" in err
    assert "--isolate" in err


@pytest.mark.parametrize("verb", ["run", "reverify"])
def test_isolation_without_serving_is_a_mistake_of_usage(said, verb):
    code, _, err = said("eval", verb, "--no-serve", "--isolate")
    assert code == 2
    assert "--isolate" in err


def test_the_suite_of_a_component_runs_in_its_folder(said):
    code, out, err = said("env", "test", "--search-dir", str(FIELD), "--resources-server", "count_letters", "--json")
    assert code == 0, err
    report = json.loads(out)
    assert (report["whole"], report["passed"], report["failed"]) == (True, 3, 0)


def test_a_suite_that_fails_is_shown_and_example_data_that_are_not_whole_are_named(tmp_path, said):
    root, server = with_requirement(tmp_path, "# no more")
    (server / "tests" / "test_app.py").write_text("def test_broken():\n    assert 1 == 2\n")
    (root / "resources_servers" / "untested").mkdir()
    suites = ("--resources-server", "count_letters", "--resources-server", "untested")
    code, out, _ = said("env", "test", "--search-dir", str(root), "should_validate_data=true", *suites)
    assert code == 1
    assert "✗ resources_servers/count_letters  0 passed, 1 failed" in out
    assert "assert 1 == 2" in out
    assert "example_rollouts.jsonl is missing" in out
    assert "- resources_servers/untested  there are no tests" in out
    assert "2 suites: 0 whole, 1 not, 1 without tests; 0 passed, 1 failed" in out


def test_all_servers_of_a_folder_are_tested_but_for_those_whose_packages_are_missing(tmp_path, said):
    root, _ = with_requirement(tmp_path, "# no more")
    needy = root / "resources_servers" / "needy"
    needy.mkdir()
    (needy / "app.py").write_text("")
    (needy / "requirements.txt").write_text("surely-missing>=2\n")
    code, out, err = said("env", "test", "--search-dir", str(root), "--all")
    assert code == 0, err
    assert "- resources_servers/needy  packages are missing: resources_servers/needy asks for surely-missing>=2" in out
    assert "✓ resources_servers/count_letters  3 passed" in out
    assert "2 suites: 1 whole, 0 not, 0 without tests, 1 without their packages; 3 passed" in out
    code, _, err = said("env", "test", "--search-dir", str(root), "--all", "--resources-server", "needy")
    assert code == 1
    assert "needy asks for surely-missing>=2" in err


@pytest.mark.parametrize("name", [["--kind", "environment", "count_letters"], ["count_letters"]])
def test_the_verifier_of_an_environment_is_checked_by_its_cases(said, name):
    code, out, err = said("env", "test", "--search-dir", str(FIELD), *name, "--json")
    assert code == 0, err
    report = json.loads(out)
    assert report["resources_server"] == "resources_servers/count_letters"
    assert [case["rewards"] for case in report["cases"]] == [[1.0], [0.0], [], [1.0, 1.0]]


def test_a_verifier_that_does_not_do_what_its_cases_say_ends_with_1_until_they_are_updated(tmp_path, said):
    root, _ = with_requirement(tmp_path, "# no more")
    cases = root / CASES
    cases.write_text(cases.read_text().replace('"expected_error": "response"', '"expected_error": "elsewhere"'))
    check = ("env", "test", "--search-dir", str(root), "count_letters")
    code, out, _ = said(*check)
    assert code == 1
    assert "no response" in out
    assert said(*check, "--update-expected")[0] == 0
    assert "elsewhere" not in cases.read_text()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ((), "name one environment"),
        (("one", "two"), "name one environment"),
        (("one", "--all"), "name one environment"),
        (
            ("count_leters",),
            "Error: count_leters: there is no environments/count_leters or benchmarks/count_leters or ",
        ),
        (("count_leters",), "Did you mean `count_letters`?"),
        (("--resources-server", "count_leters"), "Did you mean `count_letters`?"),
        (("--kind", "benchmark", "count_letters"), "benchmarks/count_letters"),
    ],
)
def test_what_cannot_be_tested_is_a_mistake_of_usage(said, words, told):
    code, _, err = said("env", "test", "--search-dir", str(FIELD), *words)
    assert code == 2
    assert told in err


@pytest.mark.skipif(not os.environ.get(REAL), reason=f"{REAL} is not set: docs/isolation.md")
def test_a_real_environment_is_made_once_and_gives_the_same_rewards(tmp_path):
    root, _ = with_requirement(tmp_path, "iniconfig<2")
    first = run(tmp_path, "--environment", "count_letters", "--isolate", root=root, seconds=580)
    assert first.returncode == 0, first.stderr
    assert "making an environment for resources_servers/count_letters" in first.stderr
    assert rewards(tmp_path / "out") == {0: (0.0, 10), 1: (1.0, 3), 2: (1.0, 1), 3: (1.0, 2), 4: (1.0, 2)}
    again = run(tmp_path, "--environment", "count_letters", "--isolate", "--overwrite", root=root)
    assert again.returncode == 0, again.stderr
    assert "making an environment" not in again.stderr
    suite = ("env", "test", "--search-dir", str(root), "--resources-server", "count_letters", "--isolate", "--json")
    assert json.loads(gym(tmp_path, *suite).stdout)["passed"] == 3

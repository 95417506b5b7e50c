"""`gym list …`, `gym env resolve` and `gym env status`: one JSON document, or text."""

import json

import pytest

from rollbook.cli.entry import exit_code_of
from rollbook.cli.terminal import fit, say_json

CONFIG = """
policy_api_key: sk-secret
limit: 3
"""


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    folder = tmp_path / "resources_servers" / "colours"
    (folder / "configs").mkdir(parents=True)
    (folder / "app.py").write_text("")
    (folder / "configs" / "colours.yaml").write_text("")
    (folder / "configs" / "strict.yaml").write_text("")
    (folder / "README.md").write_text("# Colours\n\nNames a \x1b[31mcolour.\n")
    return tmp_path


def test_a_listing_is_one_json_list(here, capsys):
    assert exit_code_of(["list", "resources-servers", "--json"]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert entries["colours"]["variants"] == ["strict"]
    assert entries["colours"]["path"] == str(here / "resources_servers" / "colours")


@pytest.mark.parametrize("text", ["é 日本", "a\x9b31mb", "\u202e", "\ud800", "\x1b[31m"])
def test_json_on_a_terminal_is_the_same_text_and_drives_nothing(text, capsys):
    say_json({"text": text})
    said = capsys.readouterr().out
    assert json.loads(said) == {"text": text}
    assert fit(said) == said


def test_a_listing_cannot_drive_the_terminal(here, capsys):
    exit_code_of(["list", "resources-servers"])
    said = capsys.readouterr().out
    assert "colours" in said
    assert "\x1b" not in said


def test_one_entry_is_shown_with_how_to_use_it(here, capsys):
    exit_code_of(["list", "resources-servers", "colours"])
    assert "gym eval run --resources-server colours" in capsys.readouterr().out


def test_an_entry_that_is_not_there_is_answered_with_the_nearest(here, capsys):
    assert exit_code_of(["list", "resources-servers", "colors"]) == 2
    assert "Did you mean colours? `gym list resources-servers` shows all." in capsys.readouterr().err


def test_how_to_use_an_entry_is_said_with_the_folder_that_was_searched(here, capsys):
    exit_code_of(["list", "resources-servers", "colours", "--search-dir", str(here)])
    assert f"use: gym eval run --search-dir {here} --resources-server colours" in capsys.readouterr().out


def test_an_environment_without_a_configuration_of_its_own_is_listed_with_those_it_has(here, capsys):
    (here / "environments" / "paint").mkdir(parents=True)
    (here / "environments" / "paint" / "config_bundled.yaml").write_text("")
    exit_code_of(["list", "environments", "paint"])
    assert "use: gym eval run --environment paint/config_bundled" in capsys.readouterr().out
    assert exit_code_of(["eval", "run", "--environment", "paint"]) == 2
    assert "It has paint/config_bundled." in capsys.readouterr().err


def test_environments_can_be_listed_without_benchmarks(here, capsys):
    for kind in ("environment", "benchmark"):
        folder = here / f"{kind}s" / f"a_{kind}"
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text("")
    for flags, names in ([], ["a_benchmark", "a_environment"]), (["--kind", "environment"], ["a_environment"]):
        assert exit_code_of(["list", "environments", "--json", *flags]) == 0
        listed = {entry["name"] for entry in json.loads(capsys.readouterr().out)}
        assert sorted(listed & {"a_benchmark", "a_environment"}) == names


@pytest.mark.parametrize("kind", ["environments", "benchmarks", "agents", "models"])
def test_every_kind_can_be_listed(kind, here, capsys):
    assert exit_code_of(["list", kind, "--json"]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), list)


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_a_resolved_configuration_is_shown_without_its_secrets(flags, here, capsys):
    (here / "run.yaml").write_text(CONFIG)
    assert exit_code_of(["env", "resolve", "--config", "run.yaml", "+limit=5", *flags]) == 0
    said = capsys.readouterr().out
    assert "sk-secret" not in said
    assert "5" in said


def test_no_deployment_is_said_in_words_and_as_an_empty_list(here, capsys, unused_tcp_port):
    head = f"+head_server={{host: 127.0.0.1, port: {unused_tcp_port}}}"
    assert exit_code_of(["env", "status", head]) == 1
    assert capsys.readouterr().out.startswith("No Rollbook servers found running")
    exit_code_of(["env", "status", head, "--json"])
    assert json.loads(capsys.readouterr().out) == []

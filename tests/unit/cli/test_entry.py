"""Exit codes, suggestions and shared flags of the command line."""

import json

import click
import pytest

from rollbook.cli import entry
from rollbook.cli.entry import exit_code_of
from rollbook.cli.verb import Verb, VerbGroup
from rollbook.errors import ConfigError, IncompleteEvaluationError


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([], 1),
        (["eval"], 1),
        (["--help"], 0),
        (["eval", "run", "-h"], 0),
        (["--version"], 0),
        (["evl"], 2),
        (["eval", "rnu"], 2),
        (["eval", "run", "--limt", "3"], 2),
        (["eval", "run", "--limit", "2.5"], 2),
        (["eval", "run", "--serve", "elsewhere"], 2),
        (["env", "start", "--json"], 2),
        (["--json", "env", "start"], 2),
        (["eval", "run", "stray"], 2),
        (["eval", "run", "--resources-server", "no_such_server"], 2),
        (["eval", "run", "--search-dir", "/no/such/folder"], 2),
    ],
)
def test_the_exit_code_says_what_went_wrong(arguments, code, capsys):
    assert exit_code_of(arguments) == code
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["evl"], "Did you mean eval"),
        (["env", "strat"], "Did you mean start"),
        (["wholly-other"], "Commands: eval, env, dataset, dev, search, list"),
        (["eval", "run", "--concurency", "3"], "--concurrency"),
        (["eval", "run", "--num-repeat", "3"], "--num-repeats"),
    ],
)
def test_a_typo_is_answered_with_the_nearest_word(arguments, hint, capsys):
    exit_code_of(arguments)
    said = capsys.readouterr()
    assert hint in said.err
    assert said.out == ""


@pytest.mark.parametrize("arguments", [["--version"], ["eval", "--version"], ["eval", "run", "--version"]])
def test_the_version_is_told_wherever_it_is_asked_for(arguments, capsys):
    exit_code_of(arguments)
    assert capsys.readouterr().out.startswith("rollbook 0.")


@pytest.mark.parametrize(
    "arguments", [["--version", "--json"], ["--json", "--version"], ["--json", "eval", "--version"]]
)
def test_the_version_is_one_json_object_when_asked(arguments, capsys):
    exit_code_of(arguments)
    facts = json.loads(capsys.readouterr().out)
    assert {"rollbook", "python", "python_path", "installation_path", "dependencies", "system"} <= facts.keys()


def test_help_names_every_verb_without_importing_it(capsys):
    exit_code_of(["eval", "--help"])
    assert "Collect rollouts and score them." in capsys.readouterr().out


def _ending_with(error, monkeypatch):
    @click.command("go")
    def go():
        raise error

    group = VerbGroup("gym", {"go": Verb("somewhere", "Go.")}, summary="Test.")
    monkeypatch.setattr(group, "get_command", lambda _context, _name: go)
    monkeypatch.setattr(entry, "gym", group)
    return exit_code_of(["go"])


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (ConfigError("limit: -1 is negative; give 0 or more"), 1, "Error: limit: -1 is negative; give 0 or more\n"),
        (IncompleteEvaluationError("3/4 completed"), 4, "Error: 3/4 completed\n"),
        (KeyboardInterrupt(), 130, "Interrupted.\n"),
        (PermissionError(13, "Permission denied", "out"), 1, "Error: out: Permission denied\n"),
        (ConfigError("a \x1b[31mred\x1b[0m name"), 1, "Error: a \\x1b[31mred\\x1b[0m name\n"),
    ],
)
def test_an_error_is_one_line_on_standard_error(error, code, line, monkeypatch, capsys):
    assert _ending_with(error, monkeypatch) == code
    said = capsys.readouterr()
    assert (said.out, said.err.removeprefix("\n")) == ("", line)


def test_a_typo_cannot_drive_the_terminal(capsys):
    exit_code_of(["ev\x1b[31ml"])
    exit_code_of(["eval", "run", "--li\x1b[31mmit", "3"])
    said = capsys.readouterr().err
    assert "\\x1b[31m" in said
    assert "\x1b" not in said


def test_a_defect_of_ours_is_one_line_too(monkeypatch, capsys):
    assert _ending_with(KeyError("lost"), monkeypatch) == 1
    said = capsys.readouterr().err
    assert said.startswith("Error: KeyError: 'lost'")
    assert said.count("\n") == 1


def test_an_error_may_choose_its_exit_code(monkeypatch):
    error = ConfigError("missing required configuration: output_jsonl_fpath")
    error.exit_code = 2
    assert _ending_with(error, monkeypatch) == 2

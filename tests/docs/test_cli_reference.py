"""docs/cli.md lists the flags that the command line has, with what they set and what help says of them."""

import re
from collections.abc import Iterator

import click
import pytest

from architecture.source_tree import REPOSITORY, table, words_in_code
from rollbook import errors
from rollbook.api.unsupported import LATER, WITHOUT_EFFECT
from rollbook.cli.entry import exit_code_of, gym
from rollbook.compare.gate import BLOCKED, UNDECIDED
from rollbook.config.attempt_cap import MAX_ATTEMPTS_VARIABLE
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.records.run_status import INCOMPLETE, RESUMABLE, VIOLATED

TEXT = (REPOSITORY / "docs" / "cli.md").read_text(encoding="utf-8")


def verbs(group: click.Group, path: tuple[str, ...] = ("gym",)) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from verbs(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


VERBS = dict(verbs(gym))


def flags_of(command: click.Command) -> dict[frozenset[str], str]:
    return {
        frozenset([*option.opts, *option.secondary_opts]): " ".join((option.help or "").split())
        for option in command.params
        if isinstance(option, click.Option) and option.expose_value
    }


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_the_flags_of_a_verb_are_those_of_its_table(verb):
    listed = {frozenset(words_in_code(flags)): meaning for flags, _, meaning in table("cli.md", verb)}
    assert listed == flags_of(VERBS[verb])


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_a_flag_sets_the_key_that_its_row_names(verb):
    parameters = {frozenset([*option.opts, *option.secondary_opts]): option.name for option in VERBS[verb].params}
    for flags, key, _ in table("cli.md", verb):
        if words_in_code(key) and words_in_code(key)[0] != "config_paths":
            assert words_in_code(key)[0].split(".")[-1] == parameters[frozenset(words_in_code(flags))]


def test_every_verb_has_a_section():
    sections = set(re.findall(r"^### (gym .+)$", TEXT, flags=re.MULTILINE))
    assert sections == set(VERBS)


OPENING = {"allow_unsafe_resume", "retry_terminal_timeouts", "record_omitted_rollouts"}


def test_what_says_how_a_run_is_gone_on_with_and_has_no_flag_is_listed():
    listed = {words_in_code(option)[0] for option, _ in table("cli.md", "Running an evaluation")}
    keys = {word.removeprefix("+").partition("=")[0] for word in listed if word.startswith("+")}
    assert OPENING <= keys <= RolloutCollectionConfig.model_fields.keys()
    assert f"{MAX_ATTEMPTS_VARIABLE}=N" in listed


WITHOUT_A_FLAG = "Options without a flag"


def test_every_option_of_a_collection_is_named():
    named = {word.removeprefix("+").partition("=")[0] for word in words_in_code(TEXT)}
    assert set(RolloutCollectionConfig.model_fields) - named == set()


def test_an_option_that_is_said_to_have_no_flag_has_none():
    listed = {words_in_code(option)[0] for option, *_ in table("cli.md", WITHOUT_A_FLAG)}
    assert listed <= RolloutCollectionConfig.model_fields.keys()
    assert listed & {parameter.name for parameter in VERBS["gym eval run"].params} == set()


def test_a_default_number_of_an_option_without_a_flag_is_its_own():
    numbers = {words_in_code(row[0])[0]: row[2] for row in table("cli.md", WITHOUT_A_FLAG) if row[2].isdecimal()}
    fields = RolloutCollectionConfig.model_fields
    assert {name: str(int(fields[name].default)) for name in numbers} == numbers
    assert len(numbers) > 5


def test_what_is_said_to_be_refused_or_without_effect_is_so():
    _, without_effect, refused = TEXT.split(f"## {WITHOUT_A_FLAG}")[1].split("## Flags")[0].rsplit("\n\n", 3)[:3]
    assert set(words_in_code(refused)) == LATER
    assert set(words_in_code(without_effect)) <= WITHOUT_EFFECT


def test_no_command_is_named_that_is_not_there():
    named = set(re.findall(r"`(gym (?:eval|env|dev|list) [a-z-]+)", TEXT))
    assert named <= set(VERBS)


def test_the_commands_for_contributors_are_those_of_the_makefile():
    read = {name: (REPOSITORY / name).read_text(encoding="utf-8") for name in ("CONTRIBUTING.md", "Makefile")}
    there = set(re.findall(r"^([a-z]+):", read["Makefile"], flags=re.MULTILINE))
    named = set(re.findall(r"(?:^|`)make ([a-z]+)", read["CONTRIBUTING.md"], flags=re.MULTILINE))
    assert {"bench", "check", "crash", "setup", "test"} <= named <= there
    assert "--hypothesis-profile nightly" in read["CONTRIBUTING.md"]


def test_the_exit_codes_of_the_table_are_those_of_the_program():
    listed = {int(code) for code, _ in table("cli.md", "Exit codes")}
    ours = {
        error.exit_code for error in vars(errors).values() if isinstance(error, type) and hasattr(error, "exit_code")
    }
    told = {RESUMABLE, INCOMPLETE, VIOLATED, BLOCKED, UNDECIDED}
    assert listed == {0, click.UsageError.exit_code, exit_code_of([]), 130} | told | ours

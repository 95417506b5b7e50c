"""docs/compare.md shows what the command prints, and every key that a policy has."""

import contextlib
import re

import pytest
import yaml

from architecture.source_tree import REPOSITORY, words_in_code
from docs.compare_example import make, make_again
from rollbook.cli.entry import exit_code_of
from rollbook.compare.policy import Policy, Tier
from run_folder import said

TEXT = (REPOSITORY / "docs" / "compare.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```\n\$ gym (.+?)\n(.+?)\n```$", TEXT, flags=re.MULTILINE | re.DOTALL)


def printed(folder, command):
    with contextlib.chdir(folder):
        return said(command.split()).out.rstrip("\n")


def test_the_example_has_the_right_verdicts_and_says_how_many_repeats_are_needed(tmp_path):
    make(tmp_path)
    (command, shown), _ = SHOWN
    assert printed(tmp_path, command) == shown
    short, terse = shown.split("Candidate  ")[1:]
    assert "no difference shown" in short
    assert "16 repeats of every task on each side" in short
    assert "Verdict    worse" in terse


def test_with_as_many_repeats_as_the_example_asks_for_the_difference_is_shown(tmp_path):
    make_again(tmp_path, repeats=16)
    _, (command, shown) = SHOWN
    assert printed(tmp_path, command) == shown
    assert "Verdict    better" in shown


def test_every_key_of_a_policy_and_of_a_tier_is_listed():
    prose = re.sub(r"^```.*?^```$", "", TEXT, flags=re.MULTILINE | re.DOTALL)
    assert {*Policy.model_fields, *Tier.model_fields} - set(words_in_code(prose)) == set()


def test_the_policy_of_the_document_is_one():
    (block,) = re.findall(r"```yaml\n(.+?)```", TEXT, flags=re.DOTALL)
    assert len(list(Policy.model_validate(yaml.safe_load(block)).demands())) == 4


@pytest.mark.parametrize("command", ["eval", "dev"])
def test_a_comparison_without_runs_is_a_usage_error(command):
    assert exit_code_of([command, "compare"]) == 2

"""Every environment is whole: what it runs, what it says of itself, what it asks, what its data are, what tests it."""

import json
import re
from pathlib import Path

import pytest
import yaml

from architecture.source_tree import PACKAGE, REPOSITORY

SHELF = PACKAGE / "components"
ENVIRONMENTS = sorted(path.name for path in (SHELF / "environments").iterdir() if (path / "config.yaml").is_file())
README_HEADINGS = ("## What it needs", "## Row fields", "## Two rollouts", "## Licence")
CARD_HEADINGS = ("## Where they come from", "## Fields", "## Splits", "## Known limits")
CARD_FIELDS = {"license", "language", "size_categories"}

pytestmark = pytest.mark.parametrize("name", ENVIRONMENTS)


def judge(name) -> Path:
    return SHELF / "resources_servers" / name


def text(path) -> str:
    return path.read_text(encoding="utf-8")


def example_rows(name):
    return [json.loads(line) for line in text(judge(name) / "data" / "example.jsonl").splitlines()]


def test_an_environment_has_all_its_files(name):
    needed = [SHELF / "environments" / name / file for file in ("config.yaml", "manifest.yaml")]
    own = ("app.py", "README.md", f"configs/{name}.yaml", "data/example.jsonl", "data/README.md")
    needed += [judge(name) / file for file in own]
    assert [str(path) for path in needed if not path.is_file()] == []
    assert [*(judge(name) / "tests").glob("test_*.py")]


def test_its_readme_says_the_reward_the_needs_and_the_licence(name):
    readme = text(judge(name) / "README.md")
    lines = readme.splitlines()
    assert [heading for heading in README_HEADINGS if lines.count(heading) != 1] == []
    opening = readme.partition("\n## ")[0]
    assert "reward" in opening
    assert f"--resources-server {name} " in opening
    assert re.search(r"## Licence\n\n.*Apache-2\.0", readme, re.DOTALL)


def test_its_readme_shows_a_success_and_a_failure(name):
    section = text(judge(name) / "README.md").partition("## Two rollouts\n")[2].partition("\n## ")[0]
    rewards = [float(reward) for reward in re.findall(r"^Reward (-?\d+(?:\.\d+)?)", section, re.MULTILINE)]
    assert len(rewards) == 2
    assert rewards[0] > rewards[1]
    assert re.search(r"^ {4}\S", section, re.MULTILINE)


def test_its_data_card_speaks_of_the_rows_that_are_there(name):
    card = text(judge(name) / "data" / "README.md")
    _, front, body = card.split("---\n", 2)
    said = yaml.safe_load(front)
    rows = example_rows(name)
    assert {*said} >= CARD_FIELDS
    assert [heading for heading in CARD_HEADINGS if body.splitlines().count(heading) != 1] == []
    assert f"| example | {len(rows)} | `example.jsonl` |" in body
    fields = re.findall(r"^\| `(\w+)` \|", body, re.MULTILINE)
    assert sorted(fields) == sorted({field for row in rows for field in row})


def test_the_page_of_environments_lists_it(name):
    page = text(REPOSITORY / "docs" / "environments.md")
    manifest = yaml.safe_load(text(SHELF / "environments" / name / "manifest.yaml"))
    low, high = manifest["reward"]["range"]
    readme = f"../src/rollbook/components/resources_servers/{name}/README.md"
    assert f"| [{name}]({readme}) | {manifest['description']} | {low} to {high} |" in page

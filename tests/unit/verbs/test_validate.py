"""An environment that is checked without servers: what is wrong with it is told, with its file and line."""

import asyncio
import json
import sys

import pytest
import yaml

from rollbook.config.manifest import read_manifest
from rollbook.errors import ConfigPathNotFoundError
from rollbook.verbs.catalogue_check import catalogue_checked
from rollbook.verbs.scaffold import Target, Wanted, planned_files
from rollbook.verbs.scaffold_write import write_new_files
from rollbook.verbs.validate import manifest_path, validated

JUDGE = "resources_servers/sums"


class Made:
    """An environment in a folder of its own; `edit` replaces text in one of its files."""

    def __init__(self, root):
        self.root = root
        write_new_files(root, planned_files(Wanted(Target.ENVIRONMENT, "sums")))
        self.manifest = root / "environments" / "sums" / "manifest.yaml"

    def edit(self, file, old, new):
        path = self.root / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    def edit_manifest(self, old, new):
        self.edit("environments/sums/manifest.yaml", old, new)

    def check(self, *, sync=False):
        found = asyncio.run(validated(self.manifest, "sums", sync=sync))
        return found, {check.name: check for check in found.checks}

    def told(self, name):
        """Return the findings of one check, below the root, and its status."""
        _, checks = self.check()
        lines = [str(finding).replace(f"{self.root}/", "") for finding in checks[name].findings]
        return checks[name].status, lines


@pytest.fixture
def made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    path, before = list(sys.path), set(sys.modules)
    yield Made(tmp_path)
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.startswith(("resources_servers.sums", "resources_servers")):
            del sys.modules[name]


def test_what_is_as_it_should_be_is_valid_and_leaves_nothing_unchecked(made):
    found, checks = made.check()
    assert found.is_valid(strict=True)
    assert {check.status for check in checks.values()} == {"ok"}
    assert "5 cases" in checks["answers"].looked_at
    assert "the gold and the empty answer of 5 rows" in checks["answers"].looked_at


ROWS = f"{JUDGE}/data/example.jsonl"
BROKEN_ROWS = [
    ("rows", ROWS, '"84"', '84"', rf"{ROWS}:3: "),
    (
        "rows",
        ROWS,
        '"expected_answer": "59"',
        '"expected": "59"',
        rf"{ROWS}:2: expected_answer: Field required; see task_",
    ),
    (
        "rows",
        ROWS,
        '{"responses_create_params": {"input": [{"role": "user", "content": "What is 17',
        "[",
        f"{ROWS}:1: ",
    ),
    (
        "rows",
        ROWS,
        '{"input": [{"role": "user", "content": "What is 40',
        '{"inputs": [{"x": "What is 40',
        f"{ROWS}:4: respon",
    ),
    (
        "rows",
        ROWS,
        '"content": "What is 91',
        '"content": 91, "x": "What is 91',
        f"{ROWS}:5: responses_create_params.input",
    ),
]
BROKEN = [
    *BROKEN_ROWS,
    (
        "answers",
        ROWS,
        '"59"',
        '"sixty"',
        f"{ROWS}:2: the gold answer has the reward 0, the best one is 1; mend verifier",
    ),
    (
        "answers",
        f"{JUDGE}/app.py",
        "else WRONG",
        "else RIGHT",
        f"{ROWS}:1: an empty answer has the reward 1; it is to lie",
    ),
    (
        "answers",
        f"{JUDGE}/app.py",
        "else WRONG",
        "else RIGHT",
        "zero_reward case 'another number': the reward was to be 0",
    ),
    (
        "answers",
        f"{JUDGE}/app.py",
        'return f"Answer',
        'raise OSError(7) or f"',
        f"{ROWS}:1: gold_answer raised OSError: 7",
    ),
    (
        "answers",
        f"{JUDGE}/app.py",
        'return f"Answer',
        'exit(0)\n    return f"Answer',
        f"{ROWS}:1: gold_answer raised SystemExit: 0",
    ),
    (
        "answers",
        f"{JUDGE}/app.py",
        "numbers[-1] if",
        "exit(0) if",
        "the verifier raised on the gold answer: SystemExit: 0",
    ),
    ("rows", f"{JUDGE}/task_data.py", "from pydantic", "exit(0)\nfrom pydantic", "task_data.py: SystemExit: 0"),
    (
        "answers",
        f"{JUDGE}/app.py",
        "numbers[-1] if",
        "numbers[-9] if",
        "the verifier raised on the gold answer: list index",
    ),
    (
        "answers",
        f"{JUDGE}/app.py",
        "else WRONG",
        "else 0.5",
        f"{ROWS}:1: an empty answer has the reward 0.5; it is to lie",
    ),
    (
        "answers",
        f"{JUDGE}/app.py",
        "reward = RIGHT",
        "reward = 0.9",
        f"{ROWS}:1: the gold answer has the reward 0.9, the best one is 1; mend verifier",
    ),
    ("answers", f"{JUDGE}/app.py", "import re\n", "import re\nimport nothing_of_this_name_x\n", None),
    ("answers", f"{JUDGE}/app.py", "RIGHT, WRONG = 1.0, 0.0", "RIGHT, WRONG = 1.0 0.0", "app.py"),
    (
        "answers",
        f"{JUDGE}/tests/verifier_cases.jsonl",
        '"malformed"',
        '"odd"',
        "verifier_cases.jsonl:4: kind: Input should",
    ),
    (
        "licence",
        "environments/sums/manifest.yaml",
        "Apache-2.0",
        "MIT",
        "manifest.yaml:9: licensing is MIT, the data card",
    ),
    (
        "licence",
        "environments/sums/manifest.yaml",
        "Apache-2.0",
        "unknown",
        "manifest.yaml:9: licensing is unknown; write",
    ),
    (
        "licence",
        f"{JUDGE}/data/README.md",
        "license: ",
        "licence: ",
        "the data card names no licence; write license: <id>",
    ),
    (
        "manifest",
        "environments/sums/manifest.yaml",
        "simple_agent",
        "other",
        "manifest.yaml:21: agent_server is other; the con",
    ),
    (
        "manifest",
        "environments/sums/manifest.yaml",
        "name: sums",
        "name: sum",
        "manifest.yaml:1: name is sum, its folder is sums",
    ),
    (
        "manifest",
        "environments/sums/manifest.yaml",
        "name: sums",
        "name: ums",
        "manifest.yaml:1: name is ums, its folder is sums",
    ),
    (
        "manifest",
        "environments/sums/manifest.yaml",
        "num_repeats: 1",
        "num_repeats: 2",
        "manifest.yaml:22: datasets is [{",
    ),
    (
        "manifest",
        "environments/sums/manifest.yaml",
        "domain: other",
        "domain: sums",
        "manifest.yaml:6: domain is 'sums'; wri",
    ),
    ("config", "environments/sums/config.yaml", "sums.yaml", "sum.yaml", "no configuration file (named in "),
    ("config", "environments/sums/config.yaml", "sums_simple_agent", "nobody", "nobody"),
    (
        "config",
        f"{JUDGE}/configs/sums.yaml",
        "entrypoint: app.py\n      domain",
        "entrypoint: b.py\n      domain",
        "no resources",
    ),
]


@pytest.mark.parametrize("broken", BROKEN)
def test_what_is_wrong_is_told_with_its_place(made, broken):
    check, file, old, new, words = broken
    made.edit(file, old, new)
    status, lines = made.told(check)
    if words is None:
        assert (status, lines) == ("not checked", [])
        return
    assert status == ("warned" if check == "licence" else "failed")
    assert any(words in line for line in lines), lines


def test_rows_that_are_not_there_are_wrong_when_they_are_examples(made):
    (made.root / ROWS).unlink()
    assert made.told("rows") == ("failed", [f"{ROWS}: the example rows are not there; write them"])


def test_a_verifier_without_a_fixture_is_not_checked_and_no_pass_when_strict(made):
    made.edit(f"{JUDGE}/app.py", "VERIFIER_FIXTURE", "SOMETHING")
    found, checks = made.check()
    assert checks["answers"].status == "not checked"
    assert "exports no VERIFIER_FIXTURE" in checks["answers"].unchecked
    assert (found.is_valid(), found.is_valid(strict=True)) == (True, False)


def test_a_verifier_without_gold_answers_says_which_part_was_not_checked(made):
    made.edit(f"{JUDGE}/app.py", "def gold_answer", "def other")
    found, checks = made.check()
    assert (checks["answers"].status, found.is_valid(strict=True)) == ("ok", False)
    assert "the rows' own answers" in checks["answers"].unchecked


def test_a_row_without_a_gold_answer_is_left_out(made):
    made.edit(f"{JUDGE}/app.py", 'return f"Answer: {row[', 'return row["expected_answer"] != "59" and f"Answer: {row[')
    made.edit(f"{JUDGE}/app.py", "'expected_answer']}\"", "'expected_answer']}\" or None")
    _, checks = made.check()
    assert "the gold and the empty answer of 4 rows" in checks["answers"].looked_at


def test_what_depends_on_a_broken_manifest_is_not_checked_and_says_so(made):
    made.manifest.write_text("- a\n")
    found, checks = made.check()
    assert checks["manifest"].findings[0].message.startswith("holds a list") or "holds a list" in str(found)
    assert {checks[name].status for name in ("rows", "licence", "answers")} == {"not checked"}
    assert not found.is_valid()


def test_a_manifest_that_is_not_there_says_what_writes_one(made):
    made.manifest.unlink()
    status, [line] = made.told("manifest")
    assert (status, line.partition(": ")[0]) == ("failed", "environments/sums/manifest.yaml")
    assert "gym env init" in line


def test_a_synced_manifest_repeats_its_configuration_and_keeps_the_rest(made):
    before = made.manifest.read_text()
    made.edit_manifest("resources_server: sums\n", "resources_server: adds\n# who acts\n")
    made.edit_manifest("agent_server: simple_agent\n", "agent_server: other  # not for long\n\n# rows\n")
    made.edit_manifest("num_repeats: 1", "num_repeats: 7")
    made.edit_manifest("model_server: policy_model\n", "")
    found, checks = made.check(sync=True)
    assert (found.synced, checks["manifest"].status) == (True, "ok")
    after = made.manifest.read_text()
    assert yaml.safe_load(after) == yaml.safe_load(before)
    assert "resources_server: sums\n# who acts\nagent_server: simple_agent\n\n# rows\ndatasets:\n" in after
    assert [path.name for path in made.manifest.parent.iterdir() if path.name.startswith("manifest")] == [
        "manifest.yaml"
    ]


def test_a_manifest_that_is_right_is_not_written_by_a_sync(made):
    before = made.manifest.stat()
    assert made.check(sync=True)[0].synced is False
    assert made.manifest.stat().st_ino == before.st_ino


def test_a_sync_of_a_manifest_on_one_line_is_refused_and_leaves_it(made):
    text = "{name: sums, agent_server: a, datasets: []}\n"
    made.manifest.write_text(text)
    found, _ = made.check(sync=True)
    assert "several fields stand on one line" in found.checks[0].findings[0].message
    assert made.manifest.read_text() == text


def test_a_manifest_says_whose_rows_are_meant_when_two_servers_declare_some(made):
    block = yaml.safe_load((made.root / JUDGE / "configs/sums.yaml").read_text())
    block["sums_simple_agent"]["responses_api_agents"]["simple_agent"]["datasets"] = [
        {"name": "mine", "type": "example", "jsonl_fpath": ROWS}
    ]
    (made.root / JUDGE / "configs/sums.yaml").write_text(yaml.safe_dump(block))
    assert made.check()[0].is_valid()
    made.edit_manifest("dataset_owner: sums\n", "")
    status, [line] = made.told("config")
    assert status == "failed"
    assert "sums, sums_simple_agent declare data sets; say in the manifest which are meant" in line


@pytest.mark.parametrize("name", ["", "..", "../environments/sums", "sum", "a/../sums"])
def test_a_name_that_no_root_holds_is_answered_with_the_near_ones(made, name):
    with pytest.raises(ConfigPathNotFoundError) as raised:
        manifest_path(name)
    assert raised.value.exit_code == 2
    assert ("Did you mean `sums`" in str(raised.value)) == (name in {"sum", "a/../sums"})


def test_a_catalogue_entry_needs_a_readme_with_headings_and_tests(made):
    assert catalogue_checked(made.manifest, "sums").status == "ok"
    for readme in ("environments/sums/README.md", f"{JUDGE}/README.md"):
        (made.root / readme).write_text("words\n")
    (made.root / JUDGE / "tests" / "test_app.py").unlink()
    made.edit_manifest("lifecycle: active", "lifecycle: deprecated")
    found = [finding.message.partition(";")[0] for finding in catalogue_checked(made.manifest, "sums").findings]
    assert found == ["lifecycle is deprecated", "no README with headings says what it is", "the verifier has no tests"]


def test_what_was_found_is_json_with_every_check(made):
    made.edit(f"{JUDGE}/app.py", "def gold_answer", "def other")
    told = json.loads(json.dumps(made.check()[0].as_json(strict=True)))
    assert (told["valid"], told["strict"], len(told["checks"])) == (False, True, 5)
    assert told["checks"][0].keys() == {"name", "status", "looked_at", "unchecked", "findings"}


def test_the_manifest_that_is_made_says_what_the_model_says(made):
    manifest = read_manifest(made.manifest)
    assert (manifest.reward.range, manifest.dataset_owner, manifest.experimental) == ((0.0, 1.0), "sums", True)

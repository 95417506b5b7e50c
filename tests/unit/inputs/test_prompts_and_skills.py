import hashlib
from pathlib import Path

import pytest

from rollbook.errors import ConfigError, InputError
from rollbook.inputs.examples import rows_of
from rollbook.inputs.prompts import PromptConfig, apply_prompt_to_row, fill_prompt, fill_prompts, load_prompt_config
from rollbook.inputs.skills import load_skills, stage_skills


def test_a_template_fills_from_the_rows_fields():
    config = PromptConfig(user="Q: {question} {{literal}}", system="Be brief.")
    assert fill_prompt(config, {"question": "2+2?"}) == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Q: 2+2? {literal}"},
    ]


def test_a_missing_field_lists_the_fields_that_are_there():
    with pytest.raises(KeyError, match="question"):
        fill_prompt(PromptConfig(user="{questoin}"), {"question": 1})
    with pytest.raises(InputError, match=r"row 0: .*questoin"):
        list(fill_prompts(PromptConfig(user="{questoin}"), rows_of([{"question": 1}])))


@pytest.mark.parametrize(
    "text", ["{q.b}", "{q[b]}", "{n:>5}", "{q[}", "{}", "{q!z}", "{q:d}", "{big:c}", "{q:>999999999999999999}"]
)
def test_a_template_that_a_row_cannot_fill_is_named_with_the_row(text):
    rows = rows_of([{"q": "text", "n": [1], "big": 2**70}])
    with pytest.raises(InputError) as caught:
        list(fill_prompts(PromptConfig(system="Be {q}.", user=text), rows))
    assert f"row 0: the user template {text!r}" in str(caught.value)


def test_a_template_keeps_the_rest_of_the_block():
    row = {"responses_create_params": {"temperature": 1}, "q": "x"}
    filled = apply_prompt_to_row(row, PromptConfig(user="{q}"))
    assert filled["responses_create_params"] == {"temperature": 1, "input": [{"role": "user", "content": "x"}]}
    assert "input" not in row["responses_create_params"]


def test_rows_with_a_prompt_of_their_own_are_all_listed():
    rows = rows_of(
        [{"responses_create_params": {"input": "own"}}, {"q": "x"}, {"responses_create_params": {"input": "own"}}]
    )
    with pytest.raises(InputError, match="row 0, row 2"):
        list(fill_prompts(PromptConfig(user="{q}"), rows))


def test_a_template_is_refused_for_episode_tasks():
    episode = {"task_id": {"taskset": "ts", "task_id": "t"}, "task_input": {"q": "x"}, "q": "x"}
    with pytest.raises(InputError, match="episode tasks: row 1"):
        list(fill_prompts(PromptConfig(user="{q}"), rows_of([{"q": "x"}, episode])))


@pytest.mark.parametrize("text", ["system: only", "- a list", "user: [1", "user: x\nother: y", "user: !!bool x"])
def test_a_template_file_that_is_none_is_named(tmp_path, text):
    path = tmp_path / "prompt.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"prompt\.yaml"):
        load_prompt_config(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("system: only", "user: Field required"),
        (
            "user: x\nuser_template: y\nsystem: 5",
            "system: Input should be a valid string; user_template: Extra inputs are",
        ),
        ("", "Input should be a valid dictionary"),
    ],
)
def test_what_a_template_file_lacks_is_told_in_a_line(tmp_path, text, said):
    path = tmp_path / "prompt.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        load_prompt_config(path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_template_is_looked_for_under_the_search_roots(tmp_path, monkeypatch):
    (tmp_path / "prompt.yaml").write_text("user: '{q}'")
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", str(tmp_path))
    assert load_prompt_config("prompt.yaml").user == "{q}"


def skill(folder, name, body="text"):
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(f"---\nname: {name}\ndescription: d\nversion: '1'\n---\n{body}")


def test_skills_are_named_by_content(tmp_path):
    skill(tmp_path / "s", "one")
    ref = load_skills(tmp_path / "s")
    content = (tmp_path / "s" / "one" / "SKILL.md").read_bytes()
    assert ref.hash == hashlib.sha256(b"one/SKILL.md\0" + content + b"\0").hexdigest()[:12]
    assert [found.name for found in ref.skills] == ["one"]


def test_skills_that_are_missing_or_malformed_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="no skills found"):
        load_skills(tmp_path)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "SKILL.md").write_text("no front matter")
    with pytest.raises(ConfigError, match="front matter"):
        load_skills(tmp_path)


@pytest.mark.parametrize("use", [load_skills, lambda path: stage_skills(path, path.parent / "new")])
def test_a_folder_of_skills_that_is_not_there_is_a_value_error_and_leaves_nothing(tmp_path, use):
    with pytest.raises(ValueError, match="skills"):
        use(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("named", [str, Path])
def test_skills_are_staged_into_a_new_folder_only(tmp_path, named):
    skill(tmp_path / "s", "one")
    assert load_skills(named(tmp_path / "s")) == load_skills(tmp_path / "s")
    stage_skills(named(tmp_path / "s"), named(tmp_path / "new"))
    assert (tmp_path / "new" / "one" / "SKILL.md").exists()
    with pytest.raises(ConfigError, match="exists already"):
        stage_skills(tmp_path / "s", tmp_path / "new")

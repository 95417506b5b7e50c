"""Skills: what their front matter says, and which files their hash speaks for."""

import pytest

from rollbook.errors import ConfigError
from rollbook.inputs.skills import hash_before_links_were_followed, load_skills, load_skills_of_run


def written(folder, text):
    (folder / "one").mkdir(parents=True)
    data = text if isinstance(text, bytes) else text.encode()
    (folder / "one" / "SKILL.md").write_bytes(data)
    return folder


def only(folder):
    (found,) = load_skills(folder).skills
    return found.name, found.description, found.version


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("---\nname: one\nversion: 1.10\n---\n", ("one", None, "1.10")),
        ("---\nname: 7\nversion: 2\ndescription: yes\n---\n", ("7", "yes", "2")),
        ("---\nname: one\ndescription: first --- then\nversion: '3'\n---\n---\n", ("one", "first --- then", "3")),
        ("---\r\nname: one\r\ndescription: |\r\n  a\r\n  ---\r\n  b\r\n---\r\n", ("one", "a\n---\nb\n", None)),
        ("\ufeff\n---\nname: one\nversion:\n---", ("one", None, None)),
        ("---\nname: one\nmetadata: {by: me}\nversion: 2026-01-02\n---\nbody", ("one", None, "2026-01-02")),
        ("<!-- licence -->\n\n# One\n\n---\nname: one\ndescription: a --- b\n---\n---\n", ("one", "a --- b", None)),
        ("---\nname: one\ndescription: null\nversion: ~\n---\n", ("one", None, None)),
        ("---\nname: 'null'\ndescription: \"~\"\nversion: Null\n---\n", ("null", "~", None)),
        ("---\nname: no\ndescription: nullable\nversion: 0x1F\n---\n", ("no", "nullable", "0x1F")),
        ("---\nbase: &base {version: 2.0}\nname: one\n<<: *base\n---\n", ("one", None, "2.0")),
    ],
)
def test_front_matter_is_read_as_it_is_written(tmp_path, text, said):
    assert only(written(tmp_path / "s", text)) == said


@pytest.mark.parametrize(
    "text",
    [
        "words\nname: one\n---\n",
        "words --- name: one\n---\n",
        "---\nname: null\n---\n",
        "---\nname: one\n",
        "---\nname: one --- \n",
        "---\nname:\n---\n",
        "---\nname: one\nversion: [1]\n---\n",
        "---\n- one\n---\n",
        "---\n\n---\n",
        "---\nname: {\n---\n",
        b"---\nname: \xff\n---\n",
        b"",
    ],
)
def test_a_file_without_front_matter_is_named(tmp_path, text):
    with pytest.raises(ConfigError, match=r"one.SKILL\.md: no front matter with a `name`"):
        load_skills(written(tmp_path / "s", text))


def test_the_hash_speaks_for_files_behind_links_too(tmp_path):
    real = written(tmp_path / "real", "---\nname: one\n---\n")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "one").symlink_to(real / "one", target_is_directory=True)
    assert load_skills(tmp_path / "linked").hash == load_skills(real).hash
    (real / "one" / "script.py").write_text("1")
    assert load_skills(tmp_path / "linked").hash == load_skills(real).hash


def test_a_link_that_leads_back_up_adds_nothing_to_the_hash(tmp_path):
    folder = written(tmp_path / "s", "---\nname: one\n---\n")
    before = load_skills(folder).hash
    (folder / "one" / "up").symlink_to(folder, target_is_directory=True)
    (folder / "gone").symlink_to(tmp_path / "nowhere")
    assert load_skills(folder).hash == before


@pytest.fixture
def shared(tmp_path):
    """Skills of which one has its references behind a link to a folder."""
    folder, references = written(tmp_path / "s", "---\nname: one\n---\n"), tmp_path / "references"
    references.mkdir()
    (references / "a.md").write_text("1")
    (folder / "one" / "references").symlink_to(references, target_is_directory=True)
    return folder


def test_a_run_keeps_the_hash_that_it_recorded_before_links_were_followed(shared):
    found, before = load_skills(shared), hash_before_links_were_followed(shared)
    (shared / "one" / "references").unlink()
    assert before == load_skills(shared).hash != found.hash


def test_the_hash_that_a_run_recorded_stands_where_the_skills_have_it_by_either_rule(shared):
    found, before = load_skills(shared), hash_before_links_were_followed(shared)
    assert load_skills_of_run(shared, before) == found.model_copy(update={"hash": before})
    for recorded in (None, found.hash, "0" * 12):
        assert load_skills_of_run(shared, recorded) == found
    (shared / "one" / "SKILL.md").write_text("---\nname: one\n---\nedited")
    assert load_skills_of_run(shared, before).hash == load_skills(shared).hash

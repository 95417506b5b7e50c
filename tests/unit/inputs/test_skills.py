"""Skills: what their front matter says, and which files their hash speaks for."""

import pytest

from rollbook.errors import ConfigError
from rollbook.inputs.skills import load_skills


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
    ],
)
def test_front_matter_is_read_as_it_is_written(tmp_path, text, said):
    assert only(written(tmp_path / "s", text)) == said


@pytest.mark.parametrize(
    "text",
    [
        "words\n---\nname: one\n---\n",
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

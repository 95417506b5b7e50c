import json

import pytest

from rollbook.servers.serving import own_distributions
from rollbook.servers.serving.own_distributions import how_to_install_names, installed, own_lines


@pytest.fixture
def as_if_installed(tmp_path, monkeypatch):
    """Have a distribution be found before every other."""

    def install(name, direct_url=None):
        folder = tmp_path / "site" / f"{name.replace('-', '_')}-9.9.dist-info"
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 9.9\n")
        if direct_url is not None:
            (folder / "direct_url.json").write_text(json.dumps(direct_url))

    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    return install


@pytest.mark.parametrize(
    ("told", "line"),
    [
        (None, "rollbook[math]==9.9"),
        ({"url": "file:///some/ours", "dir_info": {"editable": True}}, "-e /some/ours[math]"),
        ({"url": "file:///some%20where/ours", "dir_info": {}}, "rollbook[math] @ file:///some%20where/ours"),
        (
            {"url": "https://example.test/ours.git", "vcs_info": {"vcs": "git", "commit_id": "abc"}},
            "rollbook[math] @ git+https://example.test/ours.git@abc",
        ),
        (
            {"url": "file:///some/ours.whl", "archive_info": {"hash": "sha256=ab"}},
            "rollbook[math] @ file:///some/ours.whl",
        ),
    ],
)
def test_what_is_installed_here_is_what_is_installed_there(as_if_installed, told, line):
    as_if_installed("rollbook", told)
    assert own_lines(["math"], with_names=False) == (line,)


def test_the_names_of_the_field_come_along_where_they_are_asked_for(as_if_installed):
    as_if_installed("rollbook")
    as_if_installed("rollbook-nemo-gym")
    assert own_lines(with_names=True) == ("rollbook==9.9", "rollbook-nemo-gym==9.9")
    assert own_lines(with_names=False) == ("rollbook==9.9",)


def test_the_names_are_installed_from_the_folder_that_ours_came_from(as_if_installed, tmp_path):
    as_if_installed("rollbook", {"url": (tmp_path / "ours").as_uri(), "dir_info": {"editable": True}})
    assert how_to_install_names() == "pip install rollbook-nemo-gym"
    names = tmp_path / "ours" / "compat" / "nemo_gym"
    names.mkdir(parents=True)
    (names / "pyproject.toml").write_text("")
    assert how_to_install_names() == f"pip install {names}"


def test_what_is_not_installed_is_none():
    assert installed("surely-missing") is None
    assert own_distributions.NAMES == "rollbook-nemo-gym"

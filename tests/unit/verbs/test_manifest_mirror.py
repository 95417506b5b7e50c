"""A manifest's file written anew with some of its fields: the rest of it stays, and so does what lies around it."""

import stat

import pytest
import yaml

from rollbook.config.placed_yaml import read_placed_yaml
from rollbook.errors import ConfigError
from rollbook.verbs.manifest_mirror import replace_text, synced_text

RIGHT = {"agent_server": "simple_agent"}


@pytest.fixture
def manifest(tmp_path):
    path = tmp_path / "manifest.yaml"
    path.write_text("name: sums\n")
    return path


@pytest.mark.parametrize("end", ["...\n", "...  # done\n# and more\n", ""])
def test_a_missing_field_comes_before_the_mark_that_ends_the_document(manifest, end):
    manifest.write_text(f"name: sums\n{end}")
    text = synced_text(read_placed_yaml(manifest, "a manifest"), RIGHT)
    assert text == f"name: sums\nagent_server: simple_agent\n{end}"
    assert yaml.safe_load(text) == {"name": "sums", **RIGHT}


def test_a_text_that_would_not_say_what_is_wanted_is_refused(manifest):
    manifest.write_text("{\n  name: sums,\n  version: x\n}\n")
    with pytest.raises(ConfigError, match=r"cannot be changed line by line; .*agent_server: simple_agent"):
        synced_text(read_placed_yaml(manifest, "a manifest"), RIGHT)


def test_what_lies_beside_a_manifest_stays(manifest):
    beside = manifest.with_name("manifest.yaml.new")
    beside.write_text("a half-done edit\n")
    replace_text(manifest, "name: more\n")
    assert (manifest.read_text(), beside.read_text()) == ("name: more\n", "a half-done edit\n")
    assert len([*manifest.parent.iterdir()]) == 2


def test_a_manifest_that_is_a_link_stays_one_and_its_file_has_the_text_and_its_own_mode(manifest, tmp_path):
    real = tmp_path / "real.yaml"
    manifest.replace(real)
    real.chmod(0o600)
    manifest.symlink_to("real.yaml")
    replace_text(manifest, "name: more\n")
    assert manifest.is_symlink()
    assert (real.read_text(), stat.S_IMODE(real.stat().st_mode)) == ("name: more\n", 0o600)

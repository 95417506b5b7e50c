"""The catalog: listings read from folders, and short names that become files."""

import logging

import pytest

from rollbook.config.catalog import (
    Shelf,
    agents,
    benchmarks,
    environment_servers,
    environments,
    models,
    named_folder,
    resources_servers,
    selected_path,
)
from rollbook.config.listed import listed
from rollbook.errors import ConfigPathNotFoundError


@pytest.fixture
def shelves(write, here):
    write("resources_servers/colours/app.py")
    write("resources_servers/colours/configs/colours.yaml", "x: 1\n")
    write("resources_servers/colours/configs/hard.yaml", "x: 1\n")
    write("resources_servers/colours/README.md", "# Colours\n\n![badge](x)\n\nNames\ncolours.\n\nMore.\n")
    write("resources_servers/__pycache__/app.py")
    write("resources_servers/notes/README.md", "no server\n")
    write("responses_api_agents/walker/app.py")
    write("responses_api_models/local/app.py")
    write("environment_servers/turn/app.py")
    write("environments/paint/config.yaml")
    write("environments/paint/manifest.yaml", "description: Paints walls.\n")
    write("environments/paint/prompt.yaml")
    write("environments/paint/long.yaml")
    write("benchmarks/group/one/config.yaml")
    write("benchmarks/group/README.md", "a group\n")
    write("benchmarks/flat/config.yaml")
    write("benchmarks/flat/few.yaml")
    return [here]


def test_a_listing_holds_names_flavors_and_descriptions(shelves, here):
    (entry,) = resources_servers(shelves)
    assert (entry.name, entry.path, entry.flavors) == ("colours", here / "resources_servers/colours", ("hard",))
    assert entry.description == "Names colours."


def test_a_listing_reads_a_manifest_once(shelves, here):
    (entry,) = environments(shelves)
    (here / "environments/paint/manifest.yaml").unlink()
    assert "paint/manifest.yaml:1: name is missing" in listed(entry).problem


@pytest.mark.parametrize(
    ("listing", "names"),
    [
        (agents, ["walker"]),
        (models, ["local"]),
        (environment_servers, ["turn"]),
        (environments, ["paint"]),
        (benchmarks, ["flat", "group/one"]),
    ],
)
def test_every_shelf_is_listed(shelves, listing, names):
    assert [entry.name for entry in listing(shelves)] == names


def test_a_composed_entry_leaves_prompts_and_manifests_out_of_its_flavors(shelves):
    (entry,) = environments(shelves)
    assert (entry.flavors, entry.description) == (("long",), "Paints walls.")


def test_the_first_root_that_holds_a_name_wins(shelves, write, here):
    write("over/resources_servers/colours/app.py")
    (entry,) = resources_servers([here / "over", here])
    assert entry.path == here / "over/resources_servers/colours"


def test_a_long_description_is_whole(shelves, write):
    write("responses_api_agents/walker/README.md", "word " * 200)
    (entry,) = agents(shelves)
    assert entry.description == ("word " * 200).strip()


@pytest.mark.parametrize("text", ["description: [", "- a list\n"])
def test_a_manifest_that_cannot_be_read_is_no_description(shelves, write, text):
    write("environments/paint/manifest.yaml", text)
    (entry,) = environments(shelves)
    assert entry.description == ""


def test_without_roots_the_search_roots_are_listed(shelves):
    assert "colours" in [entry.name for entry in resources_servers()]


@pytest.mark.parametrize(
    ("shelf", "selector", "path"),
    [
        (Shelf.RESOURCES_SERVER, "colours", "resources_servers/colours/configs/colours.yaml"),
        (Shelf.RESOURCES_SERVER, "colours/hard", "resources_servers/colours/configs/hard.yaml"),
        (Shelf.ENVIRONMENT, "paint", "environments/paint/config.yaml"),
        (Shelf.ENVIRONMENT, "paint/long", "environments/paint/long.yaml"),
        (Shelf.BENCHMARK, "group/one", "benchmarks/group/one/config.yaml"),
        (Shelf.BENCHMARK, "flat/few", "benchmarks/flat/few.yaml"),
    ],
)
def test_a_selector_stands_for_a_file(shelves, here, shelf, selector, path):
    assert selected_path(shelf, selector, shelves) == here / path


def test_a_nested_folder_is_preferred_to_a_flavor(shelves, write, here):
    write("benchmarks/flat/few/config.yaml")
    assert selected_path(Shelf.BENCHMARK, "flat/few", shelves) == here / "benchmarks/flat/few/config.yaml"


def test_a_selector_that_several_roots_answer_says_which_it_takes(shelves, write, here, caplog):
    write("over/resources_servers/colours/configs/colours.yaml")
    with caplog.at_level(logging.WARNING):
        taken = selected_path(Shelf.RESOURCES_SERVER, "colours", [here / "over", here])
    assert taken == here / "over/resources_servers/colours/configs/colours.yaml"
    assert "--resources-server colours: " in caplog.text


@pytest.mark.parametrize(
    ("selector", "implied", "hint"),
    [
        ("colour", "there is no resources_servers/colour/configs/colour.yaml", "Did you mean `colours`"),
        ("colours/hart", "there is no resources_servers/colours/configs/hart.yaml", "`colours/hard`"),
        ("../etc", "a name is NAME or NAME/FLAVOR", ""),
        ("a/b/c", "a name is NAME or NAME/FLAVOR", ""),
        ("my/file.yaml", "there is no", "For a file use --config."),
    ],
)
def test_a_selector_that_nothing_answers_names_path_hint_and_roots(shelves, here, selector, implied, hint):
    with pytest.raises(ConfigPathNotFoundError) as caught:
        selected_path(Shelf.RESOURCES_SERVER, selector, shelves)
    text = str(caught.value)
    assert text.startswith(f"--resources-server {selector}: {implied}")
    assert f"(searched in: {here})" in text
    assert hint in text
    assert caught.value.exit_code == 2


def test_a_name_without_a_configuration_of_its_own_is_answered_with_those_it_has(write, here):
    write("resources_servers/many/configs/one.yaml", "")
    write("resources_servers/many/configs/two.yaml", "")
    with pytest.raises(ConfigPathNotFoundError, match=r"\. It has many/one and many/two\.$"):
        selected_path(Shelf.RESOURCES_SERVER, "many", [here])


def test_a_folder_is_found_by_its_name_whatever_it_holds(write, here):
    write("resources_servers/bare/README.md", "")
    assert named_folder(Shelf.RESOURCES_SERVER, "bare", [here]) == here / "resources_servers/bare"
    with pytest.raises(ConfigPathNotFoundError, match="there is no resources_servers/bear"):
        named_folder(Shelf.RESOURCES_SERVER, "bear", [here])


def test_every_shelf_has_a_flag():
    assert all(shelf.flag.startswith("--") for shelf in Shelf)

"""Every environment of the shelf, held to what `gym env validate` checks."""

import asyncio
import sys

import pytest

from rollbook.config.catalog import Shelf, shelf_entries
from rollbook.config.roots import PARENT_DIR
from rollbook.verbs.example_data import example_problems
from rollbook.verbs.validate import validated

ENVIRONMENTS = {entry.name: entry.path for entry in shelf_entries(Shelf.ENVIRONMENT, [PARENT_DIR])}
BENCHMARKS = {entry.name: entry.path for entry in shelf_entries(Shelf.BENCHMARK, [PARENT_DIR])}


@pytest.fixture(autouse=True)
def import_path_as_it_was(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = list(sys.path)
    yield
    sys.path[:] = path


@pytest.mark.parametrize("name", sorted(ENVIRONMENTS))
def test_an_environment_is_valid_and_its_verifier_tells_gold_answers_from_none(name):
    found = asyncio.run(validated(ENVIRONMENTS[name] / "manifest.yaml", name))
    wrong = [str(finding) for check in found.checks for finding in check.findings]
    assert wrong == []
    assert found.is_valid(strict=True)


@pytest.mark.parametrize("name", sorted(ENVIRONMENTS))
def test_the_example_data_of_an_environment_are_whole(name):
    assert example_problems(PARENT_DIR / "resources_servers" / name) == ()


@pytest.mark.parametrize("name", sorted(BENCHMARKS))
def test_a_benchmark_is_valid_before_its_rows_are_prepared(name):
    found = asyncio.run(validated(BENCHMARKS[name] / "manifest.yaml", name))
    assert [str(finding) for check in found.checks for finding in check.findings] == []
    assert found.is_valid()

"""What a run loads: no web framework, no client library, nothing that draws, when servers are somebody else's."""

import importlib.util
import json
import os
import subprocess
import sys

import pytest
from msgspec.structs import replace

from rollbook.cli.loading import loading
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.manifest_store import write_manifest
from saved_run import SavedRun, planned
from stub import adding, lines, serving

NOT_NEEDED = {"aiohttp", "fastapi", "hydra", "rich", "starlette", "uvicorn"}
NOT_NEEDED_TO_READ = NOT_NEEDED | {"asyncio", "omegaconf", "pydantic", "uvloop", "yaml"}
PLUGINS = "PYDANTIC_DISABLE_PLUGINS"
CODE = (
    "import json, sys\n"
    "from rollbook.cli.entry import exit_code_of\n"
    "code = exit_code_of(sys.argv[1:])\n"
    "from pydantic.plugin import _loader\n"
    "packages = sorted({name.partition('.')[0] for name in sys.modules})\n"
    "print(json.dumps([code, packages, _loader._plugins is None]))\n"
)

READING = (
    "import json, sys\n"
    "from rollbook.cli.entry import exit_code_of\n"
    "code = exit_code_of(sys.argv[1:])\n"
    "print(json.dumps([code, sorted({name.partition('.')[0] for name in sys.modules})]))\n"
)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """Run one rollout in a process of its own; return what was loaded, and whether nobody looked for plugins."""
    folder = tmp_path_factory.mktemp("start")
    (folder / "rows.jsonl").write_bytes(lines(adding(1)))
    flags = ["--no-serve", "--retry-for", "0", "--input", "rows.jsonl", "--output", "r.jsonl"]
    with serving() as stub:
        command = [sys.executable, "-c", CODE, "eval", "run", *flags, *stub.overrides]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=True)
    code, packages, no_plugins = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    return frozenset(packages), no_plugins


def test_a_run_that_others_serve_loads_neither_framework_nor_client_nor_what_draws(loaded):
    packages, _ = loaded
    assert not NOT_NEEDED & packages


def test_a_run_that_others_serve_looks_through_no_installed_package_for_plugins(loaded):
    _, no_plugins = loaded
    assert no_plugins


@pytest.mark.parametrize("verb", ["status", "profile"])
def test_who_asks_a_finished_run_loads_no_models_no_configuration_and_no_event_loop(verb, tmp_path):
    run = SavedRun(tmp_path / "run", [planned(0, 0)]).ran(0, 0)
    plan = replace(run.manifest.plan, sha256=sha256_of(run.paths.materialized_inputs))
    write_manifest(run.paths.manifest, replace(run.manifest, plan=plan))
    command = [sys.executable, "-c", READING, "eval", verb, str(run.output)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    code, packages = json.loads(done.stdout.splitlines()[-1])
    assert code == 0, done.stderr
    assert not NOT_NEEDED_TO_READ.intersection(packages)


def test_what_is_not_loaded_is_there_under_these_names():
    assert all(importlib.util.find_spec(name) for name in NOT_NEEDED_TO_READ)


def test_plugins_of_pydantic_are_looked_for_again_once_the_engine_is_loaded(monkeypatch):
    monkeypatch.delenv(PLUGINS, raising=False)
    with loading():
        assert os.environ[PLUGINS] == "__all__"
    assert PLUGINS not in os.environ
    monkeypatch.setenv(PLUGINS, "one")
    with loading():
        pass
    assert os.environ[PLUGINS] == "one"

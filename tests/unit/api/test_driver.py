"""A run that somebody else's function drives: found by name, awaited, and told about when it goes wrong."""

import asyncio
import json
import sys

import pytest
from omegaconf import OmegaConf

from rollbook.api.driver import check_driver, drive, load_driver, run_driver
from rollbook.api.request import EvaluationRequest, ServeMode
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.dispatch.stop import Stop
from rollbook.errors import ConfigError, LedgerError, RunError
from rollbook.ledger.paths import RunPaths
from rollbook.records.manifest import PlanDigest, RunManifest

MODULE = """
import asyncio, json, sys
seen = []

async def collects(settings, config):
    seen.append((settings.output_jsonl_fpath, config.where.port, config["there"]))
    for task in range(2):
        row = {"_ng_task_index": task, "_ng_rollout_index": 0, "agent_ref": {"name": "a"}, "reward": 0.5}
        with open(settings.output_jsonl_fpath, "a") as file:
            file.write(json.dumps(row) + "\\n")

async def raises(settings, config):
    raise KeyError("no such row")

async def exits(settings, config):
    sys.exit(3)

async def cancels_itself(settings, config):
    raise asyncio.CancelledError

async def waits(settings, config):
    try:
        await asyncio.Event().wait()
    finally:
        seen.append("ended")

async def writes_rubbish(settings, config):
    with open(settings.output_jsonl_fpath, "a") as file:
        file.write("rubbish\\n")

def is_not_async(settings, config):
    return 7

not_callable = 7
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A module `drivers.mine` on a path of its own."""
    folder = tmp_path / "modules" / "drivers"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text(MODULE)
    (folder / "broken.py").write_text("x = 1\nraise ValueError('at import')\n")
    (folder / "unwritten.py").write_text("def f(:\n")
    (folder / "needs.py").write_text("import a_package_that_nobody_has\n")
    monkeypatch.syspath_prepend(str(tmp_path / "modules"))
    yield folder
    for name in [name for name in sys.modules if name.split(".")[0] == "drivers"]:
        del sys.modules[name]


def settings(tmp_path, name):
    return RolloutCollectionConfig(
        output_jsonl_fpath=str(tmp_path / "r.jsonl"),
        input_jsonl_fpath="in.jsonl",
        rollout_collection_driver=f"drivers.mine:{name}",
    )


CONFIG = OmegaConf.create({"where": {"port": 8000}, "there": "${where.port}"})


def run(tmp_path, name):
    return asyncio.run(run_driver(settings(tmp_path, name), CONFIG))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("drivers.mine", r"is `drivers\.mine`; write it as module\.path:function"),
        ("drivers mine:f", "write it as"),
        ("drivers.absent:f", r"no module `drivers\.absent`.*--search-dir"),
        ("nowhere_at_all.mine:f", "no module `nowhere_at_all`"),
        ("drivers.mine:collect", r"mine\.py has no function `collect`. Did you mean `collects`"),
        ("drivers.mine:not_callable", "has no function `not_callable`"),
        ("drivers.broken:f", r"cannot be loaded \(.*broken\.py:2\): ValueError: at import"),
        ("drivers.unwritten:f", "cannot be loaded.*SyntaxError"),
        ("drivers.needs:f", "imports `a_package_that_nobody_has`, which is not installed"),
    ],
)
def test_a_driver_that_cannot_be_had_is_said_with_what_was_looked_for(module, name, said):
    with pytest.raises(ConfigError, match=said) as raised:
        asyncio.run(load_driver(name))
    assert name in str(raised.value)


def test_a_driver_is_awaited_with_the_settings_and_the_resolved_configuration(module, tmp_path):
    run(tmp_path, "collects")
    assert sys.modules["drivers.mine"].seen == [(str(tmp_path / "r.jsonl"), 8000, 8000)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("raises", r"drivers\.mine:raises \(.*mine\.py:\d+\): KeyError: 'no such row'"),
        ("exits", r"left the process \(3\)"),
        ("cancels_itself", "cancels_itself.*CancelledError"),
        ("is_not_async", "returned int; write it as `async def`"),
    ],
)
def test_what_a_driver_raises_ends_the_run_as_one_error_that_names_it(module, tmp_path, name, said):
    with pytest.raises(RunError, match=said):
        run(tmp_path, name)


def test_a_driver_ends_when_the_run_is_cancelled(module, tmp_path):
    async def cancelled():
        running = asyncio.ensure_future(run_driver(settings(tmp_path, "waits"), CONFIG))
        for _ in range(20):
            await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(cancelled())
    assert sys.modules["drivers.mine"].seen == ["ended"]


class OpenRun:
    """As much of a session as a driver's run needs."""

    def __init__(self, tmp_path, name):
        self.paths = RunPaths(tmp_path / "r.jsonl")
        rows = [{"_ng_task_index": task, "_ng_rollout_index": 0, "agent_ref": {"name": "a"}} for task in range(3)]
        self.paths.materialized_inputs.write_text("".join(json.dumps(row) + "\n" for row in rows))
        size = self.paths.materialized_inputs.stat().st_size
        plan = PlanDigest(sha256="0" * 64, bytes=size, rollouts=3)
        self.manifest = RunManifest(run_id="r1", created_at="", plan=plan)
        self.request = EvaluationRequest(settings(tmp_path, name), CONFIG)
        self.deployment = self.run = self
        self.global_config_dict = CONFIG
        self.notes = []


def test_what_a_driver_wrote_is_what_stands_and_the_rest_is_owed(module, tmp_path):
    session = OpenRun(tmp_path, "collects")
    asyncio.run(drive(session, Stop()))
    coverage = session.standings.coverage()
    assert (coverage.planned, coverage.scored, coverage.untouched, coverage.owed) == (3, 2, 1, 1)
    assert session.manifest.adopted
    assert json.loads(session.paths.manifest.read_bytes())["adopted"] is True


def test_a_stop_ends_a_driver_and_what_it_left_is_folded(module, tmp_path):
    session = OpenRun(tmp_path, "waits")

    async def stopped():
        stop = Stop()
        driving = asyncio.ensure_future(drive(session, stop))
        for _ in range(20):
            await asyncio.sleep(0)
        stop.request("SIGINT")
        await driving

    asyncio.run(stopped())
    assert sys.modules["drivers.mine"].seen == ["ended"]
    assert session.standings.coverage().untouched == 3


def test_a_line_of_a_driver_that_is_no_record_is_named(module, tmp_path):
    with pytest.raises(LedgerError, match=r"r\.jsonl:1"):
        asyncio.run(drive(OpenRun(tmp_path, "writes_rubbish"), Stop()))


def test_a_driver_is_refused_where_other_people_serve_and_none_is_fine(module, tmp_path):
    asked = settings(tmp_path, "collects")
    with pytest.raises(ConfigError, match="--no-serve"):
        asyncio.run(check_driver(EvaluationRequest(asked, CONFIG, ServeMode.NONE)))
    asyncio.run(check_driver(EvaluationRequest(asked, CONFIG)))
    nobody = asked.model_copy(update={"rollout_collection_driver": None})
    asyncio.run(check_driver(EvaluationRequest(nobody, CONFIG, ServeMode.NONE)))

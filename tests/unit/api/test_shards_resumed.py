"""What a resume runs of a shard whose call was closed while rollouts were in flight."""

import asyncio
import threading

import pytest
from aiohttp import web

from run_folder import identities, rows_of
from stub import serving
from unit.api.shard_calls import ShardFolder, planned


@pytest.fixture
def shard(tmp_path):
    return ShardFolder(tmp_path / "run")


@pytest.mark.parametrize("record", [True, False])
def test_what_is_recorded_of_tries_without_a_result_changes_nothing_that_a_resume_runs(shard, record):
    given_up = {"_ng_no_persist": True, "_ng_failure_class": "kill_shaped"}

    async def of_first_attempts(row):
        if row["_ng_task_index"] == 0 and not row.get("_ng_attempt_index"):
            return web.json_response(given_up)
        arrived.set()
        await asyncio.to_thread(over.wait)
        return None

    async def closed_early(stub):
        results = shard.call(stub, planned(2), record_omitted_rollouts=record)
        waiting = [asyncio.ensure_future(one) for one in results]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.to_thread(arrived.wait)
        await results.aclose()
        await asyncio.gather(*waiting, return_exceptions=True)
        over.set()

    arrived, over = threading.Event(), threading.Event()
    with serving(of_first_attempts) as stub:
        asyncio.run(closed_early(stub))
        assert len(rows_of(shard.paths.failures)) == 2 * record
        coverage = shard.status()["coverage"]
        assert (coverage["interrupted"], coverage["held_interrupted"]) == (2, 0)
        assert shard.told()["members"][0]["remaining"] == 2
        assert shard.resumed(stub).code == 0
    assert sorted(identities(shard.paths.output)) == [(0, 0, 1), (1, 0, 1)]


@pytest.mark.parametrize("route", [True, False])
@pytest.mark.parametrize("end", ["aclose", "aclose_and_drain"])
def test_a_call_that_was_closed_with_rollouts_in_flight_is_resumed_at_once(shard, route, end):
    async def in_flight(stub):
        results = shard.call(stub, planned(4), route_failures_to_sidecar=route)
        waiting = [asyncio.ensure_future(one) for one in results]
        await asyncio.to_thread(arrived.wait)
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        await getattr(results, end)()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def of_first_attempts(row):
        if row["_ng_task_index"] < 2 or row.get("_ng_attempt_index"):
            broken = row["_ng_task_index"] == 1 and not row.get("_ng_attempt_index")
            return web.Response(status=500) if broken else None
        arrived.set()
        await asyncio.to_thread(over.wait)
        return None

    arrived, over = threading.Event(), threading.Event()
    with serving(of_first_attempts) as stub:
        asyncio.run(in_flight(stub))
        answer = shard.resumed(stub)
        over.set()
    assert answer.code == 0, answer.text
    assert sorted(row[0] for row in identities(shard.paths.output)) == [0, 1, 2, 3]

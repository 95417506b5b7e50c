"""Every fault through `run_examples`: eager or bounded, routed or raised, sent again or once."""

import asyncio
import itertools
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import pytest

from faults.left_open import nothing_left_open
from faults.raw_server import SCRIPTED
from faults.table import FAULTS, MOST_BYTES
from rollbook.api import rollout_collection
from rollbook.api.direct_call import StartedWhenUsed
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.clock import SystemClock
from rollbook.servers.serving.remote import RemoteDeployment
from stub import AGENT

pytestmark = pytest.mark.filterwarnings("error::ResourceWarning")
GRACE = 0.005
ACCOUNT = ("_ng_failure_class", "_ng_failure_delivery", "_ng_failure_type", "_ng_failure_http_status", "failure_kind")
BESIDE = {"_ng_failure_message", "_ng_failure_response_body", "_ng_failure_sends"}


@dataclass(frozen=True, slots=True)
class Way:
    bounded: bool
    routed: bool
    again: bool

    @property
    def options(self):
        return {
            "max_resident_tasks": 2 if self.bounded else None,
            "route_failures_to_sidecar": self.routed,
            "retry_requests": self.again,
        }

    def __str__(self):
        told = "bounded" if self.bounded else "eager", "routed" if self.routed else "raised"
        return " ".join([*told, "retried" if self.again else "sent once"])


WAYS = [Way(*flags) for flags in itertools.product((False, True), repeat=3)]


class Hurried(SystemClock):
    async def sleep(self, _seconds):
        await asyncio.sleep(0)


def brought_up_briefly(client):
    """The way to the servers as a direct call has it, with little time to connect and small replies."""
    head, config = client.head_server_config, client.global_config_dict
    return StartedWhenUsed(RemoteDeployment(head, known=config, connect_grace=GRACE, max_reply_bytes=MOST_BYTES))


@pytest.fixture(autouse=True)
def seams(monkeypatch):
    monkeypatch.setattr(rollout_collection, "SystemClock", Hurried)
    monkeypatch.setattr(rollout_collection, "reached", brought_up_briefly)


@contextmanager
def of_this(way):
    """Have what is claimed here say in which way it does not hold."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"in this way: {way}")
        raise


def rows(fault, way):
    """Three rows, of which the second meets the fault."""
    for n in range(3):
        at_fault = {"fault": fault.name, "_ng_environment_server": fault.server} if n == 1 else {}
        row = {"agent_ref": {"name": AGENT}, "_ng_task_index": n, "_ng_rollout_index": 0}
        yield {"_ng_environment_server": SCRIPTED, "id": f"{fault.name}, {way}, {n}"} | row | at_fault


class Ended:
    """What a call came to: the results by the id of their row, and what was raised."""

    def __init__(self):
        self.results = {}
        self.errors = []

    async def take(self, awaitable):
        try:
            row, result = await awaitable
        except Exception as error:  # noqa: BLE001  whatever is raised is looked at
            self.errors.append(error)
        else:
            assert row["id"] not in self.results
            self.results[row["id"]] = result


@pytest.fixture(scope="module")
def run_examples(server):
    helper = RolloutCollectionHelper(reuse_server_client=True)
    return partial(helper.run_examples, head_server_config=server.head)


async def ended(server, results, fault):
    found = Ended()
    for _ in range(3 if fault.ends else 2):
        await found.take(next(results))
    if fault.ends:
        assert next(results, None) is None
        return found
    last = next(results)
    await asyncio.to_thread(server.wait, lambda: len(server.asked) == 3)
    await results.aclose()
    with pytest.raises(asyncio.CancelledError):
        await last
    return found


def check_failure(fault, way, failure):
    assert {key: failure[key] for key in ACCOUNT} == fault.told.fields
    assert failure.keys() - set(ACCOUNT) <= BESIDE
    assert failure["_ng_failure_message"]
    listed = failure.get("_ng_failure_sends", [])
    assert len(listed) == (fault.retried if way.again and fault.retried > 1 else 0)
    assert {(one["delivery"], one["exception_type"]) for one in listed} <= {
        (fault.told.delivery, fault.told.exception_type)
    }


def check_error(fault, way, error):
    assert isinstance(error, fault.told.raised), repr(error)
    assert getattr(error, "status", fault.told.status) == fault.told.status
    again = way.again and fault.retried > 1
    assert getattr(error, "__notes__", []) == ([f"sent {fault.retried} times; {fault.told.delivery}"] if again else [])


def check(fault, way, ids, found, asked):
    times = [asked.count(one) for one in ids]
    assert times == [1, fault.retried if way.again else fault.requests, 1]
    assert (found.results.pop(ids[0]), found.results.pop(ids[2])) == ({"reward": 1.0}, {"reward": 1.0})
    outcome = found.results.pop(ids[1], None)
    assert not found.results
    if not fault.ends:
        assert (outcome, found.errors) == (None, [])
    elif fault.told is None:
        assert (outcome, found.errors) == (fault.result, [])
    elif way.routed:
        check_failure(fault, way, outcome)
        assert not found.errors
    else:
        (error,) = found.errors
        check_error(fault, way, error)
        assert outcome is None


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_a_fault_is_told_as_what_it_is_and_costs_its_own_rollout_alone_whatever_the_way(
    server, run_examples, fault
):
    for way in WAYS:
        server.forget()
        examples = list(rows(fault, way))
        with of_this(way):
            with nothing_left_open(server):
                found = await ended(server, run_examples(examples, **way.options), fault)
            check(fault, way, [row["id"] for row in examples], found, server.asked)

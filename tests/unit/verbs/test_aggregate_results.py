import asyncio
from contextlib import ExitStack

import msgspec
import pytest
from msgspec.structs import replace

from rollbook.ledger.history import read_history
from rollbook.ledger.paths import RunPaths
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.records.place import File
from rollbook.records.reading import read_row
from rollbook.records.standing import Standings
from rollbook.scoring.aggregate import compute_aggregate_metrics
from rollbook.scoring.imputation import Counting
from rollbook.verbs.aggregate import aggregate
from rollbook.verbs.light_rows import Chosen, labels, labels_of, light_row, results_by_server
from saved_run import SavedRun, planned

ANSWER = b'{"agent_metrics":{"x":1},"key_metrics":{},"group_level_metrics":[],"perf_summary":null,"extra":1}'

NEVER = object()


class Servers:
    """A transport that answers aggregation requests and keeps their bodies."""

    def __init__(self, answers=None):
        self.answers, self.asked = answers or {}, {}

    async def send(self, server, path, body, exchange=None):
        assert path == "/aggregate_metrics"
        sent = b"".join(body.pieces())
        assert len(sent) == body.size
        self.asked[server] = msgspec.json.decode(sent)["verify_responses"]
        answer = self.answers.get(server, Reply(200, ANSWER))
        if isinstance(answer, Exception):
            raise answer
        if answer is NEVER:
            await asyncio.Event().wait()
        return answer


class Plan:
    """What is planned, by (server, task)."""

    def __init__(self, counts=None):
        self.counts = counts or {}

    def rollouts(self, server):
        return sum(self.by_task(server).values())

    def by_task(self, server):
        return {task: count for (named, task), count in self.counts.items() if named == server}


def row(task, server, agent="a", **extra):
    return {
        "_ng_task_index": task,
        "_ng_rollout_index": 0,
        "_ng_environment_server": server,
        "agent_ref": {"name": agent},
        "reward": 1.0,
    } | extra


@pytest.fixture
def paths(tmp_path):
    return RunPaths(tmp_path / "r.jsonl")


def write(paths, *rows):
    paths.output.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in rows))


def saved(paths):
    return msgspec.json.decode(paths.aggregate_metrics.read_bytes())


def standings_of(paths):
    return read_history(paths).standings


async def test_each_server_is_asked_once_for_its_own_rows_in_task_order(paths):
    write(paths, row(2, "e1"), row(0, "e2", "b"), row(1, "e1"))
    servers = Servers()
    entries = await aggregate(paths, standings_of(paths), Plan(), servers)
    assert [found["_ng_task_index"] for found in servers.asked["e1"]] == [1, 2]
    assert [entry["agent_ref"]["name"] for entry in entries] == ["a", "b"]
    assert msgspec.json.decode(paths.aggregate_metrics.read_bytes()) == entries
    assert "extra" not in entries[0]


async def test_a_server_that_cannot_answer_leaves_the_others_their_metrics(paths):
    write(paths, row(0, "down"), row(1, "broken"), row(2, "up"), row(3, "odd"))
    failed = SendFailed("refused", delivery=Delivery.NOT_SENT, exception_type="ClientConnectorError")
    entries = await aggregate(
        paths,
        standings_of(paths),
        Plan(),
        Servers({"down": failed, "broken": Reply(500, b'"boom"'), "odd": Reply(200, b'{"agent_metrics":null}')}),
    )
    found = {entry["_ng_environment_server"]: entry.get("aggregation_error") for entry in entries}
    assert found["up"] is None
    assert found["down"]["type"] == "ClientConnectorError"
    assert found["broken"] == {"type": "ClientResponseError", "message": '"boom"', "http_status": 500}
    assert found["odd"]["http_status"] == 200


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (500, b'"Incorrect API key: sk-0123456789abcdef"', '"Incorrect API key: ****"'),
        (200, b'{"agent_metrics":{"key":"sk-0123456789abcdef"}', '{"agent_metrics":{"key":"****"}'),
        (200, rb'{"agent_metrics":{"a":"\ud800"}}', "is half of a surrogate pair and no character"),
    ],
)
async def test_what_a_server_says_instead_of_metrics_is_told_without_credentials(paths, status, body, told):
    write(paths, row(0, "broken"))
    (entry,) = await aggregate(paths, standings_of(paths), Plan(), Servers({"broken": Reply(status, body)}))
    assert told in entry["aggregation_error"]["message"]
    assert b"sk-01" not in paths.aggregate_metrics.read_bytes()


async def test_a_server_that_never_answers_leaves_the_others_their_metrics(paths):
    write(paths, row(0, "hangs"), row(1, "up"))
    entries = await aggregate(paths, standings_of(paths), Plan(), Servers({"hangs": NEVER}), seconds=0)
    found = {entry["_ng_environment_server"]: entry.get("aggregation_error") for entry in entries}
    assert found == {"hangs": {"type": "TimeoutError", "message": "no reply within 0 s"}, "up": None}
    assert [entry["_ng_environment_server"] for entry in saved(paths)] == ["hangs", "up"]


async def test_of_a_server_that_is_gone_the_metrics_of_any_server_are_computed_here_and_say_so(paths):
    rewards = {(0, 0): 1.0, (0, 1): 0.0, (1, 0): 1.0, (1, 1): 1.0}
    rows = [row(task, "gone", reward=reward) | {"_ng_rollout_index": n} for (task, n), reward in rewards.items()]
    write(paths, *reversed(rows))
    gone = SendFailed("refused", delivery=Delivery.NOT_SENT, exception_type="ClientConnectorError")
    (returned,) = await aggregate(paths, standings_of(paths), Plan(), Servers({"gone": gone}))
    (entry,) = saved(paths)
    of_server = compute_aggregate_metrics(rows).model_dump(exclude_none=True)
    assert {name: entry[name] for name in of_server} == of_server
    assert entry["computed_locally"]
    assert "any server computes" in entry["note"]
    assert entry["aggregation_error"]["type"] == "ClientConnectorError"
    assert returned == entry | {"group_level_metrics": []}


async def test_metrics_computed_here_say_what_they_cover_of_the_plan(paths):
    write(paths, row(0, "e"), row(1, "e") | {"_ng_rollout_index": 3})
    plan = Plan({("e", 0): 1, ("e", 1): 4})
    await aggregate(paths, standings_of(paths), plan, Servers({"e": Reply(500, b"")}))
    (entry,) = saved(paths)
    assert entry["key_metrics"]["coverage/missing"] == 3
    shares = [(task["expected_num_rollouts"], task["missing_num_rollouts"]) for task in entry["group_level_metrics"]]
    assert shares == [(1, 0), (4, 3)]


async def test_rows_of_an_agent_whose_server_nobody_knows_are_not_dropped(paths):
    write(paths, row(0, None), row(1, "up", "b"))
    servers = Servers()
    entries = await aggregate(paths, standings_of(paths), Plan(), servers)
    assert list(servers.asked) == ["up"]
    assert (entries[0]["agent_ref"], entries[0]["_ng_environment_server"]) == ({"name": "a"}, None)
    assert entries[0]["aggregation_error"]["type"] == "AgentWithoutEnvironmentServerError"
    assert entries[0]["agent_metrics"]["mean/reward"] == 1.0


async def test_rows_that_name_no_server_go_to_the_one_that_fronts_their_agent(paths):
    write(paths, row(0, None), row(1, "up"))
    servers = Servers()
    await aggregate(paths, standings_of(paths), Plan(), servers, serving=lambda _agent, server: server or "up")
    assert [found["_ng_task_index"] for found in servers.asked["up"]] == [0, 1]


async def test_rollouts_that_count_as_zero_stand_among_the_results_by_task_and_repeat(tmp_path):
    run = SavedRun(tmp_path, [planned(task, n, _ng_environment_server="e", level=9) for task in (0, 1) for n in (0, 1)])
    run.ran(0, 1, _ng_environment_server="e", level=1).failed(0, 0).ran(1, 0, _ng_environment_server="e", level=2)
    chosen = Chosen(Counting(frozenset({"agent_run_error"}), missing=True))
    servers = Servers()
    await aggregate(run.paths, standings_of(run.paths), Plan(), servers, chosen=chosen)
    sent = [
        (row["_ng_task_index"], row["_ng_rollout_index"], row["reward"], row["level"]) for row in servers.asked["e"]
    ]
    assert sent == [(0, 0, 0.0, 9), (0, 1, 1.0, 1), (1, 0, 1.0, 2), (1, 1, 0.0, 9)]
    assert not any(name.startswith("_ng_failure") for row in servers.asked["e"] for name in row)


async def test_a_body_that_cannot_be_read_back_is_an_entry_that_says_so(paths):
    write(paths, row(0, "bad"), row(1, "up"))
    entries = await aggregate(paths, standings_of(paths), Plan(), Servers({"bad": OSError(5, "Input/output error")}))
    (error,) = [entry["aggregation_error"] for entry in entries if "aggregation_error" in entry]
    assert error == {
        "type": "OSError",
        "message": "the results were not read back: [Errno 5] Input/output error",
    }


async def test_an_aggregation_that_is_cancelled_leaves_no_file_and_asks_nobody_further(paths):
    write(paths, row(0, "hangs"), row(1, "up"))
    servers = Servers({"hangs": NEVER})
    aggregating = asyncio.create_task(aggregate(paths, standings_of(paths), Plan(), servers))
    async with asyncio.timeout(60):
        while len(servers.asked) < 2:  # noqa: ASYNC110  what is waited for is another's state
            await asyncio.sleep(0)
    aggregating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await aggregating
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert [path.name for path in paths.output.parent.iterdir()] == ["r.jsonl"]


async def test_an_aggregation_that_is_cancelled_while_results_are_read_waits_for_the_files_alone(paths):
    write(paths, *(row(task, "e") for task in range(20_000)))
    servers = Servers()
    aggregating = asyncio.create_task(aggregate(paths, standings_of(paths), Plan(), servers))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    aggregating.cancel()
    with pytest.raises(asyncio.CancelledError):
        await aggregating
    assert servers.asked == {}
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_once_it_is_over_no_further_result_is_read(paths):
    write(paths, row(0, "e"), row(1, "e"))
    with ExitStack() as holding:
        assert results_by_server(paths, standings_of(paths), holding, lambda: True) == ()


async def test_a_mark_that_an_editor_put_before_the_results_is_no_part_of_them(paths):
    write(paths, row(0, "e"), row(1, "e"))
    paths.output.write_bytes(b"\xef\xbb\xbf" + paths.output.read_bytes())
    servers = Servers()
    await aggregate(paths, standings_of(paths), Plan(), servers)
    assert [found["_ng_task_index"] for found in servers.asked["e"]] == [0, 1]


def test_a_row_sheds_its_bulk_and_keeps_usage():
    heavy = {
        "response": {"output": [1], "usage": {"n": 1}},
        "responses_create_params": {},
        "ng_trajectory": {},
        "reward": 1,
    }
    assert light_row(msgspec.json.encode(heavy)) == b'{"reward":1,"response":{"usage":{"n":1}}}'
    assert light_row(b'{"response":{"output":[],"usage":null}}') == b"{}"
    assert light_row(b'{"response":"no object","x":1}') == b'{"x":1}'


def test_what_this_session_wrote_is_found_and_a_second_pass_finds_the_same(paths):
    rows = [row(task, server, server[-1], _ng_run_id="r") for task, server in [(2, "e1"), (0, "e2"), (1, "e1")]]
    write(paths, *rows, row(1, "e1", reward=0.5, _ng_run_id="r", _ng_attempt_index=1))
    standings = Standings()
    for written in rows:
        standings.add(replace(read_row(msgspec.json.encode(written), File.RESULTS), place=None))
    for _ in range(2):
        with ExitStack() as holding:
            found = results_by_server(paths, standings, holding)
            bodies = [msgspec.json.decode(b"".join(group.body.pieces()))["verify_responses"] for group in found]
        assert [(group.server, group.rows, group.agents) for group in found] == [("e1", 2, ("1",)), ("e2", 1, ("2",))]
        assert [[(row["_ng_task_index"], row["reward"]) for row in body] for body in bodies] == [
            [(1, 1.0), (2, 1.0)],
            [(0, 1.0)],
        ]


def test_two_servers_of_one_agent_are_labelled_by_server(paths):
    write(paths, row(0, "s1"), row(1, "s2"), row(2, "s3", "other"))
    with ExitStack() as holding:
        found = results_by_server(paths, standings_of(paths), holding)
    assert labels_of(found) == {"s1": "s1", "s2": "s2", "s3": "other"}


def test_a_server_of_two_agents_keeps_its_name_and_so_does_every_other_server_of_one_of_them():
    assert labels([("s1", ("a",)), ("s2", ("a", "b")), ("s3", ("c",)), ("c", ("d", "e"))]) == {
        "s1": "s1",
        "s2": "s2",
        "s3": "s3",
        "c": "c",
    }


async def test_a_late_result_of_an_older_attempt_is_no_part_of_the_metrics(paths):
    managed = {"_ng_run_id": "r"}
    write(paths, row(0, "e", **managed, _ng_attempt_index=1), row(0, "e", **managed, reward=0.0))
    servers = Servers()
    await aggregate(paths, standings_of(paths), Plan(), servers)
    assert [(found["_ng_attempt_index"], found["reward"]) for found in servers.asked["e"]] == [(1, 1.0)]


async def test_metrics_say_what_they_cover_of_the_plan(paths):
    write(paths, row(0, "e"), row(1, "e") | {"_ng_rollout_index": 3})
    tasks = [
        {"_ng_task_index": n, "num_rollouts": 1, "expected_num_rollouts": 1, "missing_num_rollouts": 0} for n in (0, 1)
    ]
    answer = {"agent_metrics": {"mean/reward": 1.0}, "key_metrics": {}, "group_level_metrics": tasks}
    plan = Plan({("e", 0): 1, ("e", 1): 4, ("other", 0): 9})
    servers = Servers({"e": Reply(200, msgspec.json.encode(answer))})
    (entry,) = await aggregate(paths, standings_of(paths), plan, servers)
    coverage = {"coverage/expected": 5, "coverage/scored": 2, "coverage/missing": 3}
    assert entry["agent_metrics"] == {"mean/reward": 1.0} | coverage
    assert entry["key_metrics"] == coverage
    shares = [(task["expected_num_rollouts"], task["missing_num_rollouts"]) for task in entry["group_level_metrics"]]
    assert shares == [(1, 0), (4, 3)]
    assert entry["group_level_metrics"][1]["reward_profile_completion_pct"] == 25.0


async def test_a_whole_run_adds_no_coverage_keys(paths):
    write(paths, row(0, "e"))
    (entry,) = await aggregate(paths, standings_of(paths), Plan({("e", 0): 1}), Servers())
    assert entry["agent_metrics"] == {"x": 1}

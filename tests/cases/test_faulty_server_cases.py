"""Cases from the field about servers that answer badly: one rollout fails, is told of, and takes no other with it."""

import json

import pytest

from cases.peer import reply_of, result, serving
from cases.played import FAILURES, METRICS, RESULTS, Played, key_of
from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.config.types import BaseServerConfig
from stub import adding

TASKS = 20
KEY = "sk-rollbook-0123456789abcdef"


@pytest.fixture
def play(tmp_path):
    """Return what plays a run of twenty tasks against a peer with a script."""
    with serving() as peer:

        def played(script, tasks=TASKS):
            peer.script = script
            return Played(tmp_path, peer, adding(tasks))

        yield played


def but(**replies):
    """Answer every task, and these tasks (`t3=…`) with other bytes."""

    async def script(asked):
        data = replies.get(f"t{asked.task}")
        if data is not None:
            asked.answer(data)

    return script


def failures(played):
    """Return the rows of failures by task."""
    return {row["_ng_task_index"]: row for row in played.rows(FAILURES)}


def mean_of(played):
    (metrics,) = json.loads(played.bytes_of(METRICS))
    return metrics["agent_metrics"]["mean/reward"]


def test_rc_31_one_server_error_is_one_row_and_the_others_finish(play):
    played = play(but(t3=reply_of(b"x" * 9000, 500)))
    said = played.run("--concurrency", "8")
    assert said.code == 3
    assert len(played.rows(RESULTS)) == TASKS - 1
    (row,) = played.rows(FAILURES)
    assert key_of(row) == (3, 0)
    assert (row["_ng_failure_class"], row["_ng_failure_http_status"]) == ("agent_run_error", 500)
    assert 0 < len(row["_ng_failure_response_body"]) <= 2001  # an ellipsis says that there was more
    assert not {"reward", "response"} & row.keys()
    assert mean_of(played) == 1.0
    assert f"{TASKS - 1} of {TASKS}" in said.text
    assert played.run("--overwrite", "--require-complete").code == 4


def test_rc_31_one_server_error_ends_a_run_that_does_not_route_failures_and_is_kept_as_evidence(play):
    played = play(but(t3=reply_of(b"no", 500)))
    said = played.run("--concurrency", "1", "--no-route-failures")
    assert said.code == 1
    assert len(played.scored()) == 3
    assert [key_of(row) for row in played.rows(FAILURES)] == [(3, 0)]
    played.stub.script = but()
    assert played.resume("--concurrency", "1").code == 0
    assert len(played.scored()) == TASKS


BAD_BODIES = {
    2: reply_of(b"<html>busy</html>", kind="text/html"),
    5: reply_of(b""),
    8: reply_of(b'{"reward": 1.0, "resp'),
}


def test_rc_38_a_reply_without_a_usable_body_is_a_failure_with_its_status_and_never_a_result(play):
    played = play(but(**{f"t{task}": data for task, data in BAD_BODIES.items()}))
    assert played.run("--concurrency", "4").code == 3
    rows = failures(played)
    assert rows.keys() == BAD_BODIES.keys()
    assert {row["_ng_failure_http_status"] for row in rows.values()} == {200}
    assert "busy" in json.dumps(rows[2])
    assert all(not {"reward", "response"} & row.keys() for row in rows.values())
    assert len(played.scored()) == TASKS - 3
    assert mean_of(played) == 1.0


SHAPES = {
    1: b"null",
    2: b"[]",
    3: b'"ok"',
    4: b"{}",
    5: b'{"reward": 0}',
    6: b'{"response": {}}',
    7: b'{"reward": "high", "response": {}}',
    8: b'{"reward": NaN, "response": {}}',
}


def test_rc_46_replies_of_the_wrong_shape_are_each_in_exactly_one_file_and_the_run_goes_on(play):
    played = play(but(**{f"t{task}": reply_of(data) for task, data in SHAPES.items()}))
    said = played.run("--concurrency", "4")
    assert said.code == 3
    results = {row["_ng_task_index"]: row for row in played.rows(RESULTS)}
    lost = failures(played)
    assert results.keys() | lost.keys() == set(range(TASKS))
    assert not results.keys() & lost.keys()
    assert {1, 2, 3} <= lost.keys()
    assert all("invalid" in str(lost[task]).lower() for task in (1, 2, 3))
    rewards = [row["reward"] for row in results.values() if type(row.get("reward")) in (int, float)]
    assert mean_of(played) == pytest.approx(sum(rewards) / len(rewards))
    _, told = played.status()
    coverage = told["coverage"]
    assert (coverage["scored"], coverage["failed"]) == (len(rewards), len(lost))
    assert coverage["unscored"] == len(results) - len(rewards)
    assert told["law_holds"]


def test_rc_48_the_upstream_cause_is_told_and_kept_and_the_key_is_not(play, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    upstream = json.dumps({"detail": 'the model answered 401: {"error": "bad key"}', "authorization": f"Bearer {KEY}"})
    failed = reply_of(upstream.encode(), 500)
    played = play(but(t3=failed, t4=failed))
    said = played.run("--concurrency", "1", "--model-api-key", KEY)
    kept = json.dumps(played.rows(FAILURES))
    for text in (said.text, kept):
        assert "401" in text
        assert "bad key" in text
    files = b"".join(played.files().values()).decode()
    assert KEY not in said.text + files
    assert len(json.dumps(failures(played)[3])) < 4000


async def test_rc_31_in_a_programs_own_loop_the_error_reaches_that_awaitable_only(play):
    played = play(but(t3=reply_of(b"no", 500)))
    rows = [row | {"_ng_task_index": n, "_ng_rollout_index": 0} for n, row in enumerate(adding(TASKS))]
    head = BaseServerConfig(host="127.0.0.1", port=played.stub.port)
    ended = []
    for awaitable in RolloutCollectionHelper().run_examples(rows, head_server_config=head):
        try:
            row, _ = await awaitable
        except Exception as error:  # noqa: BLE001  what it raises is the claim
            ended.append(getattr(error, "status", None))
        else:
            ended.append(row["_ng_task_index"])
    assert sorted(ended) == sorted({*range(TASKS), 500} - {3})


LIMIT, PIECES = 20_000, 64


async def too_much(asked):
    """Say 64 MiB of unannounced length, and stop when the other side does not listen any more."""
    asked.say(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    asked.pieces = 0
    while asked.pieces < PIECES and not asked.gone.is_set():
        asked.say(b" " * (1 << 20))
        asked.pieces += 1
        await asked.taken()
    asked.close()


def test_a_reply_beyond_its_limit_is_a_failure_with_its_status_whose_rest_is_not_read(play):
    big = result({"_ng_task_index": 4, "_ng_rollout_index": 0}, text="x" * LIMIT)

    async def script(asked):
        if asked.task == 3:
            await too_much(asked)
        elif asked.task == 4:
            asked.answer(big)

    played = play(script)
    assert played.run("--concurrency", "2", f"+max_reply_bytes={LIMIT}").code == 3
    rows = failures(played)
    assert rows.keys() == {3, 4}
    assert {row["_ng_failure_http_status"] for row in rows.values()} == {200}
    assert all(str(LIMIT) in row["_ng_failure_message"].replace(",", "") for row in rows.values())
    assert len(played.scored()) == TASKS - 2
    (asked,) = [asked for asked in played.stub.asked if asked.task == 3]
    assert asked.pieces < PIECES

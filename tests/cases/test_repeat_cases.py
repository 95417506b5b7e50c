"""Repeats are tries of their own (RC-86), and the seed of each is a function of the repeat (RC-87)."""

import json
from itertools import count

import pytest
from aiohttp import web

from cases.played import FAILURES, LOG, PLAN, RESULTS, Played, called
from stub import AGENT, adding, serving


@pytest.fixture
def stub():
    with serving() as stub:
        yield stub


def counting():
    """Answer with a number that no other answer has."""
    numbers = count()
    return lambda row: web.json_response(row | {"reward": 1.0, "response": {"output": []}, "answer": next(numbers)})


def test_each_repeat_is_a_request_and_a_row_of_its_own(tmp_path, stub):
    played = Played(tmp_path, stub, adding(1))
    stub.script = counting()
    assert played.run("--num-repeats", "8", "--concurrency", "8").code == 0
    assert sorted(played.asked()) == [(0, repeat) for repeat in range(8)]
    rows = played.rows(RESULTS)
    assert len({row["answer"] for row in rows}) == len({row["_ng_rollout_index"] for row in rows}) == 8
    prompts = {json.dumps(row["responses_create_params"]) for row in stub.requests}
    assert len(prompts) == 1


def test_each_repeat_is_one_on_a_resume_too(tmp_path, stub):
    played = Played(tmp_path, stub, adding(1))
    stub.script = counting()
    assert played.run("--num-repeats", "8", "--concurrency", "8").code == 0
    played.as_if_killed(RESULTS, len(played.bytes_of(RESULTS).splitlines(keepends=True)[0]))
    before = {row["answer"] for row in played.rows(RESULTS)}
    since = len(stub.requests)
    assert played.resume("--num-repeats", "8", "--concurrency", "8").code == 0
    assert len(set(played.asked(since))) == len(played.asked(since)) == 7
    answers = [row["answer"] for row in played.rows(RESULTS)]
    assert len(set(answers)) == 8
    assert before < set(answers)


SEEDED = ("--num-repeats", "3", "+num_repeats_add_seed=true", "--concurrency", "1")


def seeds(rows):
    """Return what each request's extra body holds, by (repeat, attempt)."""
    found = {}
    for row in rows:
        extra_body = json.loads(row["responses_create_params"]["metadata"]["extra_body"])
        found[row["_ng_rollout_index"], row.get("_ng_attempt_index", 0)] = extra_body
    return found


def with_extra_body(text):
    params = {"input": "q", "metadata": {"extra_body": text, "other": "kept"}}
    return {"responses_create_params": params, "agent_ref": {"name": AGENT}}


def test_the_seed_is_the_repeats_number_and_the_rest_of_the_extra_body_is_kept(tmp_path, stub):
    played = Played(tmp_path, stub, [with_extra_body('{"top_k": 5}')])
    assert played.run(*SEEDED).code == 0
    assert seeds(stub.requests) == {(repeat, 0): {"top_k": 5, "seed": repeat} for repeat in range(3)}
    assert all(row["responses_create_params"]["metadata"]["other"] == "kept" for row in stub.requests)


def failing_once(repeat):
    """Fail the first attempt of one repeat."""
    failure = {"_ng_failure_class": "agent_run_error", "_ng_failure_message": "no"}

    def answer(row):
        fails = row["_ng_rollout_index"] == repeat and not row.get("_ng_attempt_index")
        return web.json_response(failure) if fails else None

    return answer


def test_the_seed_of_a_repeat_is_the_same_on_its_next_attempt(tmp_path, stub):
    played = Played(tmp_path, stub, [with_extra_body('{"top_k": 5}')])
    stub.script = failing_once(1)
    assert played.run(*SEEDED).code == 3
    assert len(played.rows(FAILURES)) == 1
    assert played.resume(*SEEDED).code == 0
    assert seeds(stub.requests)[1, 0] == seeds(stub.requests)[1, 1] == {"top_k": 5, "seed": 1}


def test_the_seed_of_a_repeat_whose_result_was_lost_is_the_same(tmp_path, stub):
    played = Played(tmp_path, stub, [with_extra_body('{"top_k": 5}')])
    assert played.run(*SEEDED).code == 0
    played.as_if_killed(RESULTS, len(played.bytes_of(RESULTS).splitlines(keepends=True)[0]))
    since = len(stub.requests)
    assert played.resume(*SEEDED).code == 0
    assert {repeat: body for (repeat, _), body in seeds(stub.requests[since:]).items()} == {
        repeat: {"top_k": 5, "seed": repeat} for repeat in (1, 2)
    }


@pytest.mark.parametrize("text", ["not json", "[1]", "3"])
def test_an_extra_body_that_takes_no_seed_is_reported_with_its_line_and_nothing_is_sent(tmp_path, stub, text):
    played = Played(tmp_path, stub, [with_extra_body("{}"), with_extra_body(text)])
    said = called(played.words(*SEEDED))
    assert said.code == 1
    assert f"{played.input.name}:2" in said.text
    assert "extra_body must be a JSON object in a string" in said.text
    assert not stub.requests
    assert not any((played.folder / name).exists() for name in (PLAN, RESULTS, LOG))


def test_an_extra_body_that_is_no_json_travels_as_it_is_where_no_seed_is_added(tmp_path, stub):
    played = Played(tmp_path, stub, [with_extra_body("not json")])
    assert played.run("--num-repeats", "2").code == 0
    assert {row["responses_create_params"]["metadata"]["extra_body"] for row in stub.requests} == {"not json"}

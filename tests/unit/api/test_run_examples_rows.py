"""Rows of a direct call: what is handed back is what was sent, and nobody else's."""

import copy
import datetime as dt

import pytest

from stub import ENVIRONMENT
from unit.api.direct_calls import Call, rows

PROMPT = [{"role": "user", "content": "add 1 and 1"}]
EPISODE = {
    "task_id": {"taskset": "sums", "task_id": "t"},
    "task_input": {"responses_create_params": {"input": PROMPT}},
    "_ng_environment_server": ENVIRONMENT,
    "_ng_rollout_id": "mine",
}


def flat(**more):
    return {**rows()[0], "responses_create_params": {"input": PROMPT}, **more}


def unnumbered(**more):
    return {key: value for key, value in flat(**more).items() if not key.endswith("_index")}


EXAMPLES = [flat(), flat(_ng_attempt_index=2), unnumbered(), unnumbered(_ng_rollout_id="mine"), EPISODE]


@pytest.mark.parametrize("example", EXAMPLES, ids=["flat", "attempt", "unnumbered", "named", "episode"])
async def test_a_row_comes_back_as_it_was_sent_whatever_its_owner_makes_of_it_meanwhile(example):
    mine = copy.deepcopy(example)
    call = Call(examples=[mine], route_failures=True)
    for block in (mine.get("responses_create_params"), mine.get("task_input")):
        if block is not None:
            block["input"] = "changed"
    ((row, _),) = await call.all()
    assert row == example
    assert [*row] == [*example]
    assert "changed" not in str(call.transport.sent[0].body)


async def test_who_changes_a_row_that_came_back_changes_no_other_and_none_of_the_callers():
    shared = {"input": list(PROMPT)}
    examples = [flat(responses_create_params=shared, _ng_rollout_index=n) for n in range(2)]
    before = copy.deepcopy(examples)
    call = Call(examples=examples)
    (first, _), (second, _) = await call.all()
    first["responses_create_params"]["input"].append("an answer")
    first["agent_ref"]["name"] = "another"
    assert second == before[1]
    assert examples == before


async def test_a_date_in_a_row_comes_back_as_the_text_that_was_sent():
    call = Call(examples=[flat(at=dt.date(2024, 1, 2))])
    ((row, _),) = await call.all()
    assert row["at"] == call.transport.sent[0].body["at"] == "2024-01-02"

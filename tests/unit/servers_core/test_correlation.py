from unittest.mock import MagicMock

import pytest
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field

from rollbook.servers.correlation import (
    RolloutContext,
    RolloutContextMiddleware,
    apply_rollout_prefix,
    current_rollout,
    current_rollout_id,
    rollout_context,
    rollout_id_from_run,
    split_rollout_prefix,
)
from unit.servers_core.stand_ins import reply_to

PATHS = [
    ("/verify", None, "/verify"),
    ("/ng-rollout/3-0/verify", RolloutContext("3-0"), "/verify"),
    ("/ng-rollout/3-0-a2/v1/responses", RolloutContext("3-0-a2"), "/v1/responses"),
    (
        "/ng-rollout/a.b_c/training-token-capture/v1/responses",
        RolloutContext("a.b_c", training_capture=True),
        "/v1/responses",
    ),
    ("/ng-rollout/3-0", RolloutContext("3-0"), "/"),
    ("/ng-rollout/not an id/verify", None, "/ng-rollout/not an id/verify"),
]


class Row(BaseModel):
    model_config = ConfigDict(extra="allow")

    capture_rollout_id: str | None = Field(default=None, alias="_ng_rollout_id", exclude=True)


@pytest.mark.parametrize(("path", "context", "rest"), PATHS)
def test_a_prefix_is_taken_off_a_path(path, context, rest):
    assert split_rollout_prefix(path) == (context, rest)


def test_a_prefix_is_put_on_once():
    once = apply_rollout_prefix("/verify", "3-0")
    assert once == "/ng-rollout/3-0/verify"
    assert apply_rollout_prefix(once, "4-0") == once
    assert apply_rollout_prefix("/verify", None) == "/verify"
    assert apply_rollout_prefix("/v1", "3-0", token_capture=True) == "/ng-rollout/3-0/training-token-capture/v1"


@pytest.mark.parametrize(
    ("row", "rollout_id"),
    [
        ({"_ng_task_index": 3, "_ng_rollout_index": 0}, "3-0"),
        ({"_ng_task_index": 3, "_ng_rollout_index": 0, "_ng_attempt_index": 2}, "3-0-a2"),
        ({"_ng_task_index": 3, "_ng_rollout_index": 0, "_ng_rollout_id": "own"}, "own"),
        ({"question": "?"}, None),
    ],
)
def test_a_body_names_its_rollout_as_a_row_and_as_a_model(row, rollout_id):
    assert rollout_id_from_run(row) == rollout_id
    assert rollout_id_from_run(Row.model_validate(row)) == rollout_id


def test_the_context_ends_with_its_block():
    with rollout_context("1-0"):
        assert current_rollout_id() == "1-0"
        with rollout_context(None):
            assert current_rollout_id() == "1-0"
    assert current_rollout_id() is None


async def test_a_server_serves_a_prefixed_path_inside_the_rollout():
    app = FastAPI()
    app.add_middleware(RolloutContextMiddleware)
    app.add_middleware(RolloutContextMiddleware)

    @app.get("/who")
    async def who() -> str | None:
        context = current_rollout()
        return context and f"{context.rollout_id} {context.training_capture}"

    expected = {
        "/ng-rollout/3-0/training-token-capture/who": "3-0 True",
        "/ng-rollout/3-0/who": "3-0 False",
        "/who": None,
    }
    assert {path: await (await reply_to(app, "GET", path)).json() for path in expected} == expected


def test_an_address_takes_the_prefix_behind_it_and_keeps_its_version_last():
    assert apply_rollout_prefix("http://h:1", "3-0") == "http://h:1/ng-rollout/3-0"
    once = apply_rollout_prefix("http://h:1/v1", "3-0")
    assert once == "http://h:1/ng-rollout/3-0/v1"
    assert apply_rollout_prefix(once, "4-0") == once


def test_a_body_that_only_stands_in_for_one_names_no_rollout():
    assert rollout_id_from_run(MagicMock()) is None

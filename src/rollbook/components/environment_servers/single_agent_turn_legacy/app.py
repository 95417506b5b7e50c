"""Single agent turns for flat rows: a row goes in, a verified row comes out.

Rules:
* The turn is the one of `single_agent_turn`; only the two ends differ.
* A failure is a row that says so; a judge that could not be asked keeps the response that it was to judge.
* A row that names no rollout gets an id of its own.

Source: servers.md §3.10; collection.md §4.4, §4.6.
"""

from typing import Any, Final
from uuid import uuid4

from fastapi import FastAPI, HTTPException

from environment_servers.single_agent_turn.app import SingleAgentTurnConfig, SingleAgentTurnServer
from rollbook import (
    ATTEMPT_INDEX_KEY_NAME,
    JUDGE_FAILED,
    NG_FAILURE_CLASS_KEY,
    NG_FAILURE_JUDGE_ERROR_KEY,
    NG_FAILURE_MESSAGE_KEY,
    NG_FAILURE_PARTIAL_RESPONSE_KEY,
    NG_FAILURE_STAGE_KEY,
    NG_TERMINAL_KEY,
    SingleAgentTurnFailure,
    SingleAgentTurnRequest,
    logical_rollout_id,
    materialize_task,
)

FAILURE_CLASS: Final = "environment_server_failed"
UNPROCESSABLE: Final = 422


class SingleAgentTurnLegacyServer(SingleAgentTurnServer):
    """Runs single agent turns for flat rows."""

    config: SingleAgentTurnConfig

    def setup_webserver(self) -> FastAPI:
        """Return the application with the two routes, `/run` for rows."""
        app = FastAPI()
        self.setup_session_middleware(app)
        app.post("/run")(self.run_row)
        app.post("/aggregate_metrics")(self.aggregate_metrics)
        return app

    async def run_row(self, body: dict[str, Any]) -> dict[str, Any]:
        """Run a row's turn and return the row verified, or a row that says how it failed."""
        try:
            request = self._request(body)
        except ValueError as error:
            raise HTTPException(UNPROCESSABLE, str(error)) from error
        reply = await self.run_request(request)
        if reply.failure is not None:
            return failure_row(body, reply.failure)
        result = reply.result.model_dump(mode="json") if reply.result else {}
        return {key: value for key, value in result.items() if key != "ng_agent_observations" or value is not None}

    def _request(self, row: dict[str, Any]) -> SingleAgentTurnRequest:
        task = materialize_task(row, taskset=row.get("task_source") or self.config.resources_server.name, task_index=0)
        attempt = row.get(ATTEMPT_INDEX_KEY_NAME) or 0
        episode = {"rollout_id": logical_rollout_id(row) or uuid4().hex, "attempt": attempt}
        return SingleAgentTurnRequest.model_validate({"episode_id": episode, "task": task})


def failure_row(row: dict[str, Any], failure: SingleAgentTurnFailure) -> dict[str, Any]:
    """Return the row for a failed turn."""
    said = failure.model_dump(mode="json")
    response = said.get("partial_response")
    if failure.failure_kind == JUDGE_FAILED and response is not None:
        return {
            **row,
            "response": response,
            "reward": 0.0,
            "mask_sample": True,
            "failure_kind": JUDGE_FAILED,
            "failure_reason": failure.failure_reason,
            NG_FAILURE_CLASS_KEY: JUDGE_FAILED,
            NG_FAILURE_JUDGE_ERROR_KEY: failure.failure_reason,
        }
    optional = {NG_FAILURE_STAGE_KEY: said.get("stage"), NG_FAILURE_PARTIAL_RESPONSE_KEY: response}
    return {
        "failure_kind": failure.failure_kind,
        NG_FAILURE_CLASS_KEY: FAILURE_CLASS,
        NG_TERMINAL_KEY: failure.terminal,
        NG_FAILURE_MESSAGE_KEY: failure.failure_reason,
        **{key: value for key, value in optional.items() if value is not None},
    }


if __name__ == "__main__":
    SingleAgentTurnLegacyServer.run_webserver()

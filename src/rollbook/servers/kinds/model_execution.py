"""Who answered a model call: an endpoint behind the server, or the server itself.

Rules:
* The facts belong to the request: whoever holds it, a middleware for example, reads them there.

Source: servers.md §3.11; collection.md §8.2.
"""

from typing import Any, Final

from starlette.requests import Request

MODEL_EXECUTION: Final = "rollbook.model_execution"
"""The key of the facts in a request's scope."""


def start_model_execution(request: Request | None, *, upstream_attempted: bool) -> dict[str, Any]:
    """Return the facts of a call that begins now, to be filled in: `response_source` and the like.

    `upstream_attempted` says whether an endpoint is asked. `response_source` is `upstream` or `local`, with an
    `upstream_status_code` or a `local_response_reason`.
    """
    facts: dict[str, Any] = {"upstream_attempted": upstream_attempted}
    if isinstance(request, Request):
        request.scope[MODEL_EXECUTION] = facts
    return facts

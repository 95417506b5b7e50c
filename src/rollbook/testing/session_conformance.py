"""Whether a resources server keeps the contract of typed sessions, asked through its application alone.

Rules:
* A session is known by its id: a repeat carries no cookie and is recognised all the same.
* The first breach ends the check, and says what was sent, what was expected and what came back.

Source: servers.md §3.7.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from starlette.types import ASGIApp

from rollbook.records.json_values import JsonObject
from rollbook.servers.http.embedded_call import EmbeddedRequest, call_embedded, request_scope

_ERROR: Final = 400
_HOST: Final = "127.0.0.1"
_PORT: Final = 80


class SessionContractError(AssertionError):
    """A resources server that does not keep the contract of typed sessions."""


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: object


async def check_resources_session_contract(app: ASGIApp, seed: Mapping[str, object], *, keeps_state: bool) -> None:
    """Seed, repeat, contradict, close and seed again; `seed` is the body of a `/seed_session` request.

    `keeps_state` says that the server holds something for a session: contradictions must then be refused.

    Raises:
        SessionContractError: the first breach.

    """
    session_id = seed["resources_session_id"]
    close = {"resources_session_id": session_id, "episode_id": seed["episode_id"]}
    await _echoes(app, "/seed_session", seed, "the first seed")
    await _echoes(app, "/seed_session", seed, "the same seed again")
    if keeps_state:
        await _refuses(app, "/seed_session", {**seed, "episode_id": _other_episode(seed)}, "a seed by another episode")
        await _refuses(app, "/seed_session", {**seed, "task_id": _other_task(seed)}, "a seed for another task")
        await _refuses(app, "/close_session", {**close, "episode_id": _other_episode(seed)}, "another episode's close")
    await _echoes(app, "/close_session", close, "the close")
    await _echoes(app, "/close_session", close, "the same close again")
    if keeps_state:
        await _refuses(app, "/seed_session", seed, "a seed after the close")


async def _echoes(app: ASGIApp, path: str, body: Mapping[str, object], what: str) -> None:
    answer = await _post(app, path, body)
    said = answer.body.get("resources_session_id") if isinstance(answer.body, dict) else None
    if answer.status >= _ERROR or said != body["resources_session_id"]:
        raise SessionContractError(f"{what} must be answered with the session's id; {_shown(path, body, answer)}")


async def _refuses(app: ASGIApp, path: str, body: Mapping[str, object], what: str) -> None:
    answer = await _post(app, path, body)
    if answer.status < _ERROR:
        raise SessionContractError(f"{what} must be refused; {_shown(path, body, answer)}")


def _shown(path: str, body: Mapping[str, object], answer: _Answer) -> str:
    return f"POST {path} {json.dumps(body)} was answered {answer.status}: {answer.body!r}"


async def _post(app: ASGIApp, path: str, body: Mapping[str, object]) -> _Answer:
    asked = EmbeddedRequest(
        "POST", f"http://{_HOST}:{_PORT}", path, {"content-type": "application/json"}, json.dumps(body).encode()
    )
    reply = await call_embedded(app, request_scope(asked, _HOST, _PORT, {}), asked, set())
    text = await reply.text()
    try:
        return _Answer(reply.status, json.loads(text))
    except ValueError:
        return _Answer(reply.status, text)


def _other_episode(seed: Mapping[str, object]) -> JsonObject:
    episode = seed["episode_id"]
    attempt = episode.get("attempt", 0) if isinstance(episode, Mapping) else 0
    return {**(episode if isinstance(episode, Mapping) else {}), "attempt": attempt + 1}


def _other_task(seed: Mapping[str, object]) -> JsonObject:
    task = seed["task_id"]
    return {**(task if isinstance(task, Mapping) else {}), "task_id": "another task"}

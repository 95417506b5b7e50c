"""A server that nobody can call and that reaches nobody: for checks and tests that run without servers.

Rules:
* It is built as a served one is, from its class and settings; it has no address, and its client knows no other server.
* A model that it asks answers what `model_says` tells: the same for the same question, so that a verdict is known.

Source: servers.md §8.12.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

import orjson
from omegaconf import OmegaConf

from rollbook.config.types import BaseServerConfig
from rollbook.records.json_values import JsonObject
from rollbook.servers.base import SimpleServer
from rollbook.servers.client import ServerClient
from rollbook.servers.http.embedded_call import EmbeddedRequest
from rollbook.servers.http.embedded_response import EmbeddedResponse
from rollbook.servers.http.request_body import json_bytes

ServerT = TypeVar("ServerT", bound=SimpleServer)
_NOWHERE: Final = {"host": "127.0.0.1", "port": 0, "entrypoint": "app.py"}
_RESPONSES: Final = "/v1/responses"
_JSON: Final = [(b"content-type", b"application/json")]


def unserved_server(kind: type[ServerT], *, model_says: Callable[[str], str] | None = None, **settings: Any) -> ServerT:
    """Return a server of class `kind` whose configuration has these `settings`, by the names of its fields.

    `model_says(prompt)` stands for every model server that it asks, a judge's too: it is given the texts of the
    request's input, one below the other, and returns the text of the response.

    Raises:
        pydantic.ValidationError: a setting that its configuration does not have, or has otherwise.

    """
    config: Any = kind.model_fields["config"].annotation
    nobody = BaseServerConfig(host="127.0.0.1", port=0), OmegaConf.create({})
    client = ServerClient(*nobody) if model_says is None else _SaidByModel(*nobody, model_says)
    told = {**_NOWHERE, "name": kind.__name__, **settings}
    return kind(config=config.model_validate(told), server_client=client)


class _SaidByModel(ServerClient):
    """Answers what is asked of a model, and reaches nobody."""

    def __init__(self, head: BaseServerConfig, config: Any, says: Callable[[str], str]) -> None:
        super().__init__(head, config)
        self._says = says

    async def request(self, server_name: str, url_path: str, method: str, **kwargs: Any) -> Any:
        """Return the response of a model that was asked at `/v1/responses`.

        Raises:
            ValueError: another path; no server stands behind it.

        """
        if url_path != _RESPONSES:
            raise ValueError(
                f"{server_name}{url_path}: `model_says` of an unserved server stands for {_RESPONSES} alone"
            )
        asked = EmbeddedRequest(method, f"http://{server_name}", url_path, body=json_bytes(kwargs.get("json")))
        said = self._says(prompt_of(orjson.loads(asked.body)))
        return EmbeddedResponse(asked, 200, _JSON, json_bytes(_response(said)))


def prompt_of(params: Mapping[str, Any]) -> str:
    """Return the texts of a request's input, one below the other."""
    asked = params["input"]
    if isinstance(asked, str):
        return asked
    contents = [message.get("content") or "" for message in asked]
    return "\n".join(
        content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content)
        for content in contents
    )


def _response(text: str) -> JsonObject:
    part = {"type": "output_text", "text": text, "annotations": []}
    message = {"id": "msg", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    told = {"id": "resp", "created_at": 0, "model": "told", "object": "response", "output": [message]}
    return {**told, "parallel_tool_calls": False, "tool_choice": "auto", "tools": []}

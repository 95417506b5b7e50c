"""A plain route writes a model with settings of its own for JSON as the framework's layers write it."""

from datetime import timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from omegaconf import OmegaConf
from pydantic import BaseModel, ConfigDict

from rollbook.config.types import BaseRunServerInstanceConfig
from rollbook.servers.base import SimpleServer
from rollbook.servers.client import ServerClient
from rollbook.servers.direct.direct_way import DirectWay
from rollbook.servers.http.embedded_call import EmbeddedRequest, call_embedded, request_scope
from unit.servers_core.stand_ins import HEAD


class Plain(BaseModel):
    any: Any = None


class Constants(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="constants")

    any: Any = None
    number: float = 1.0


class Seconds(BaseModel):
    model_config = ConfigDict(ser_json_timedelta="float")

    any: Any = None


class Encoded(BaseModel):
    model_config = ConfigDict(ser_json_bytes="base64")

    any: Any = None


REPLIES = (
    (Constants, Constants(any=float("inf"), number=float("nan"))),
    (Constants | Plain, Constants(any=float("inf"), number=float("nan"))),
    (Plain | Constants, Plain(any=float("nan"))),
    (Seconds | Plain, Seconds(any=timedelta(seconds=3))),
    (Encoded, Encoded(any=b"\xff")),
)


async def replied(kind: Any, answer: BaseModel, *, direct: bool) -> tuple[int, bytes]:
    class AnyServer(SimpleServer):
        def setup_webserver(self) -> FastAPI:
            app = FastAPI()
            self.setup_session_middleware(app)
            app.post("/it", response_model=kind)(handler)
            return app

    async def handler() -> Any:
        return answer

    config = BaseRunServerInstanceConfig(host="127.0.0.1", port=1, entrypoint="app.py", name="it")
    app = AnyServer(config=config, server_client=ServerClient(HEAD, OmegaConf.create({}))).build_app()
    if not direct:
        app.build_middleware_stack = lambda: FastAPI.build_middleware_stack(app)  # type: ignore[method-assign]
    assert isinstance(app.build_middleware_stack(), DirectWay) is direct
    asked = EmbeddedRequest("POST", "http://it", "/it", {"content-type": "application/json"}, b"{}")
    reply = await call_embedded(app, request_scope(asked, "it", 80, {}), asked, set())
    return reply.status, await reply.read()


@pytest.mark.parametrize(("kind", "answer"), REPLIES, ids=[str(kind) for kind, _ in REPLIES])
async def test_a_model_with_settings_for_json_is_written_as_its_route_writes_it(kind, answer):
    assert await replied(kind, answer, direct=True) == await replied(kind, answer, direct=False)

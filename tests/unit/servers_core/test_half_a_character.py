"""A text that no reply can hold: whoever sent it is told so, and whoever made it up has failed."""

from typing import Any

import pytest
from fastapi import FastAPI, Request
from fastapi.responses import PlainTextResponse
from omegaconf import OmegaConf
from pydantic import BaseModel

from rollbook.config.types import BaseRunServerInstanceConfig
from rollbook.records.exchange import DEADLINE_HEADER
from rollbook.records.failure_report import FAILURE_REPORT_HEADER
from rollbook.servers.base import SimpleServer
from rollbook.servers.client import ServerClient, request
from unit.servers_core.stand_ins import HEAD, behind_a_socket, in_process

HALF = "\udce9"
JSON = {"content-type": "application/json"}
SENT = [rb'{"said": "\udce9"}', rb'{"said": "\uDCE9", "more": "\ud83d\ude00"}', b'{"said": "\xed\xb3\xa9"}']
WHOLE = [b'{"said": "e"}', rb'{"said": "\ud83d\ude00"}', rb'{"said": "\\udce9"}', '{"said": "\ud55c"}'.encode()]


class Text(BaseModel):
    said: str


class Speaker(SimpleServer):
    """Says what it was told, or half of a character of its own."""

    def setup_webserver(self) -> FastAPI:
        app = FastAPI()
        self.setup_session_middleware(app)
        for handler in (self.echo, self.plain_echo, self.read_echo, self.own, self.plain_own, self.text, self.filed):
            app.post(f"/{handler.__name__}")(handler)
        app.post("/run")(self.filed)
        return app

    async def echo(self, body: Text) -> Text:
        return body

    async def plain_echo(self, body: dict[str, Any]):
        return body

    async def read_echo(self, request: Request):
        return await request.json()

    async def own(self, body: Text) -> Text:
        return Text.model_construct(said=HALF)

    async def plain_own(self, body: dict[str, Any]):
        return {"said": HALF}

    async def text(self, body: dict[str, Any]):
        return PlainTextResponse(body["said"])

    async def filed(self, body: dict[str, Any]):
        return {"bytes": len(HALF.encode())}


def speaker() -> FastAPI:
    config = BaseRunServerInstanceConfig(host="127.0.0.1", port=1, entrypoint="", name="speaker")
    return Speaker(config=config, server_client=ServerClient(HEAD, OmegaConf.create({}))).build_app()


async def told(url, path, body, **headers):
    reply = await request("POST", f"{url}/{path}", data=body, headers=JSON | headers)
    return reply.status, FAILURE_REPORT_HEADER in reply.headers, await reply.text()


@pytest.mark.parametrize("served", [behind_a_socket, in_process])
async def test_half_a_character_that_was_sent_is_refused_with_what_to_do(served):
    async with served(speaker()) as url:
        for path in ("echo", "plain_echo", "read_echo", "text"):
            for body in SENT:
                status, reported, text = await told(url, path, body)
                assert (status, reported) == (422, False), (path, body)
                assert "send the whole character" in text


@pytest.mark.parametrize("served", [behind_a_socket, in_process])
async def test_half_a_character_that_was_not_sent_is_the_servers_failure_and_reported(served):
    async with served(speaker()) as url:
        for path in ("own", "plain_own", "filed"):
            for body in WHOLE:
                status, reported, text = await told(url, path, body)
                assert (status, reported) == (500, True), (path, body)
                assert "surrogates not allowed" in text
            assert (await told(url, path, WHOLE[0], **{DEADLINE_HEADER: "60"}))[:2] == (500, True)


@pytest.mark.parametrize("served", [behind_a_socket, in_process])
async def test_what_a_handler_cannot_write_elsewhere_is_its_failure_whatever_was_sent(served):
    async with served(speaker()) as url:
        for body in SENT:
            assert (await told(url, "filed", body))[:2] == (500, True), body

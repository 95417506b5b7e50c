"""Applications on real loopback ports, each in a thread of its own, and a scripted model endpoint among them."""

import asyncio
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

STARTED_WITHIN_SECONDS = 60.0


class _Server(uvicorn.Server):
    def __init__(self, app) -> None:
        super().__init__(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        self.up = threading.Event()

    async def startup(self, sockets=None) -> None:
        await super().startup(sockets)
        self.up.set()


@contextmanager
def serving(app) -> Iterator[str]:
    """Serve `app` inside the block, and give its base URL."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    server = _Server(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    thread.start()
    try:
        assert server.up.wait(STARTED_WITHIN_SECONDS), "the application did not start"
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(STARTED_WITHIN_SECONDS)
        listener.close()


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    text: str

    def json(self):
        return json.loads(self.text)


async def call(method: str, url: str, body=None, headers=None) -> Answer:
    async with (
        aiohttp.ClientSession() as session,
        session.request(method, url, json=body, headers=headers or {}) as reply,
    ):
        return Answer(reply.status, {key.lower(): value for key, value in reply.headers.items()}, await reply.text())


def post(url: str, body, headers=None) -> Answer:
    """Post JSON from a test that is not a coroutine."""
    return asyncio.run(call("POST", url, body, headers))


def events(text: str) -> list[tuple[str | None, object]]:
    """The events of an SSE text as (name, data)."""
    found = []
    for block in text.strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if lines:
            data = lines["data"]
            found.append((lines.get("event"), data if data == "[DONE]" else json.loads(data)))
    return found


@dataclass(slots=True)
class Endpoint:
    """A model endpoint that speaks both dialects. `script` holds replies to give before the usual one."""

    base_url: str = ""
    seen: list[tuple[str, dict, dict[str, str]]] = field(default_factory=list)
    script: list[Response] = field(default_factory=list)
    answer: Callable[[str, dict], object] | None = None

    def reset(self) -> None:
        self.seen.clear()
        self.script.clear()
        self.answer = None

    @property
    def last(self) -> dict:
        return self.seen[-1][1]

    async def serve(self, request: Request) -> Response:
        path = request.url.path
        body = json.loads(await request.body() or b"{}")
        self.seen.append((path, body, dict(request.headers)))
        if self.script:
            return self.script.pop(0)
        given = self.answer(path, body) if self.answer else None
        return given if isinstance(given, Response) else JSONResponse(given or usual(path, body))

    def app(self) -> Starlette:
        return Starlette(routes=[Route("/{path:path}", self.serve, methods=["GET", "POST"])])


def error(status: int, code: str | None = None, message: str = "no", headers=None) -> Response:
    return JSONResponse({"error": {"message": message, "code": code}}, status, headers=headers)


def usual(path: str, body: dict) -> dict:
    """What the endpoint answers: a call of the first tool when there is one and no result yet, else an echo."""
    if path.endswith("/tokenize"):
        return {"tokens": [1, 2, 3]}
    if path.endswith("/models"):
        return {"data": [{"id": "tiny"}]}
    if path.endswith("/responses"):
        return _response(body)
    if path.endswith("/chat/completions"):
        return chat(_chat_message(body), model=body.get("model", ""))
    text = f"completed {body['prompt']}"
    choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": None}
    return {"id": "cmpl-1", "object": "text_completion", "created": 5, "model": "tiny", "choices": [choice]}


def chat(message: dict, finish: str = "stop", model: str = "tiny", **more) -> dict:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    choice = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", **message},
        **more.pop("choice", {}),
    }
    envelope = {"id": "chat-1", "object": "chat.completion", "created": 5, "model": model, "usage": usage}
    return {**envelope, "choices": [choice], **more}


def _chat_message(body: dict) -> dict:
    last = body["messages"][-1]
    if body.get("tools") and last["role"] == "user":
        function = {"name": body["tools"][0]["function"]["name"], "arguments": '{"city": "Oslo"}'}
        return {"content": None, "tool_calls": [{"id": "call-1", "type": "function", "function": function}]}
    content = last.get("content")
    text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content or ())
    return {"content": f"you said {text}"}


def _response(body: dict) -> dict:
    source = body["input"]
    last = {"role": "user", "content": source} if isinstance(source, str) else source[-1]
    if body.get("tools") and last.get("role") == "user":
        call_item = {"type": "function_call", "id": "fc_1", "call_id": "call-1", "status": "completed"}
        item = {**call_item, "name": body["tools"][0]["name"], "arguments": '{"city": "Oslo"}'}
    else:
        part = {
            "type": "output_text",
            "text": f"you said {last.get('content') or last.get('output')}",
            "annotations": [],
        }
        item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]}
    usage = {"input_tokens": 3, "output_tokens": 2, "total_tokens": 5}
    details = {"input_tokens_details": {"cached_tokens": 1}, "output_tokens_details": {"reasoning_tokens": 0}}
    frame = {"id": "resp_1", "object": "response", "created_at": 5, "model": body["model"], "status": "completed"}
    echo = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": body.get("tools", [])}
    return {**frame, **echo, "output": [item], "usage": {**usage, **details}, "provider_extra": {"a": 1}}

"""A model endpoint on loopback that knows the answers of the rows it was given, and counts what it was asked.

Rules:
* What is said follows from the prompt and the seed of the request alone, whoever asks and however often.
* A judge is told "equal" about one wrong answer, and "not equal" about the other.
* A prompt that holds words which are `broken` is answered with status 400.
"""

import asyncio
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from aiohttp import web

NEARLY, WRONG = "7001", "7002"
USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 18,
}


class Endpoint:
    """One running endpoint; `asked` counts the first requests of conversations by (prompt, seed)."""

    def __init__(self, rows: Sequence[dict], seconds: float) -> None:
        self.answers = {_prompt(row["responses_create_params"]["input"]): row.get("expected_answer") for row in rows}
        self.seconds = seconds
        self.asked: Counter[tuple[str, int]] = Counter()
        self.judged = 0
        self.broken: frozenset[str] = frozenset()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    async def models(self, _request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [{"id": "known", "object": "model"}]})

    async def responses(self, request: web.Request) -> web.Response:
        body = await request.json()
        await asyncio.sleep(self.seconds)
        if any(words in json.dumps(body["input"]) for words in self.broken):
            return web.json_response({"error": {"message": "broken for a while", "type": "invalid"}}, status=400)
        return web.json_response(
            {
                "id": "resp_known",
                "object": "response",
                "created_at": 1.0,
                "status": "completed",
                "model": "known",
                "output": [self.item(body)],
                "usage": USAGE,
                "parallel_tool_calls": True,
                "tool_choice": "auto",
                "tools": body.get("tools") or [],
                "metadata": {},
                "temperature": 1.0,
                "top_p": 1.0,
                "error": None,
                "incomplete_details": None,
                "instructions": None,
            }
        )

    def item(self, body: dict) -> dict:
        given = body["input"] if isinstance(body["input"], list) else [{"role": "user", "content": body["input"]}]
        if any(item.get("type") == "function_call_output" for item in given):
            return _message("That is what the tool says.")
        prompt = _prompt(given)
        if "[[A=B]]" in prompt or "[[A=B]]" in str(body.get("instructions")):
            self.judged += 1
            return _message("[[A=B]]" if NEARLY in prompt else "[[A!=B]]")
        seed = _seed(body)
        self.asked[prompt, seed] += 1
        if body.get("tools"):
            return _call(body["tools"][0]["name"])
        return _message(f"\\boxed{{{self.answer(prompt, seed)}}}")

    def answer(self, prompt: str, seed: int) -> str:
        drawn = hashlib.sha256(f"{seed} {prompt}".encode()).digest()[0]
        right = self.answers[prompt]
        if len(right) == 1 and right.isalpha():
            return right if drawn < 150 else ("A" if right != "A" else "B")
        return right if drawn < 100 else NEARLY if drawn < 180 else WRONG


def _prompt(given: list[dict]) -> str:
    return " ".join(_text(item.get("content")) for item in given)


def _text(content: object) -> str:
    if isinstance(content, list):
        return " ".join(part.get("text", "") for part in content)
    return str(content)


def _seed(body: dict) -> int:
    extra = (body.get("metadata") or {}).get("extra_body")
    return int(json.loads(extra).get("seed", 0)) if extra else 0


def _message(text: str) -> dict:
    part = {"type": "output_text", "text": text, "annotations": []}
    return {"id": "msg_known", "type": "message", "role": "assistant", "status": "completed", "content": [part]}


def _call(name: str) -> dict:
    arguments = json.dumps({"city": "Oslo"})
    return {"type": "function_call", "call_id": "call_known", "name": name, "arguments": arguments, "id": "fc_known"}


@contextmanager
def knowing(rows: Sequence[dict], seconds: float = 0.0) -> Iterator[Endpoint]:
    """Serve an endpoint in a thread of its own for as long as the block lasts; each reply takes `seconds`."""
    endpoint, started, loop = Endpoint(rows, seconds), threading.Event(), asyncio.new_event_loop()
    stopping = asyncio.Event()

    async def serve() -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_get("/v1/models", endpoint.models)
        app.router.add_post("/v1/responses", endpoint.responses)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        endpoint.port = runner.addresses[0][1]
        started.set()
        await stopping.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield endpoint
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(10)
        loop.close()

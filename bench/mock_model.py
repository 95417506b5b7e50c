"""A loopback model that answers at once: first it calls a tool, then it says how the weather is.

`python mock_model.py PORT` serves until it is ended; the word `ready` on standard output says that it listens.
"""

import asyncio
import json
import sys

from stub import framed

USAGE = {
    "input_tokens": 60,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 20,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 80,
}


def response(*output: dict[str, object]) -> bytes:
    """Return a whole reply with these items."""
    answer = {"id": "resp_mock", "object": "response", "created_at": 1756074069.0, "model": "mock-model"}
    more = {
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
    }
    rest = {"temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0, "status": "completed", "usage": USAGE}
    return framed(json.dumps({**answer, **more, **rest, "output": output}).encode())


def call(name: str, arguments: str) -> dict[str, object]:
    """Return a tool call."""
    named = {"id": "fc_1", "call_id": "call_1", "name": name, "arguments": arguments}
    return {"type": "function_call", "status": "completed", **named}


def message(text: str) -> dict[str, object]:
    """Return the model's last words."""
    content = [{"type": "output_text", "text": text, "annotations": [], "logprobs": []}]
    return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}


async def serve(port: int) -> None:
    """Answer until the process is ended."""
    calling = response(call("get_weather", '{"city": "San Francisco"}'))
    telling = response(message("It is cold in San Francisco."))
    models = framed(b'{"object":"list","data":[{"id":"mock-model","object":"model","created":0,"owned_by":"mock"}]}')

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = asked.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
                body = await reader.readexactly(int(length or 0))
                turn = telling if b"function_call_output" in body else calling
                writer.write(models if asked.startswith(b"get ") else turn)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answered, "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))

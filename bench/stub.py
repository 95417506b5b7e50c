"""A loopback server that answers every rollout at once with the same reply, and is its own head server.

`python stub.py PORT [BYTES]` serves replies of so many bytes until it is ended; the word `ready` on standard output
says that it listens. It is to cost little: what is measured is who asks.
"""

import asyncio
import json
import sys

import uvloop
from folder import RESULT_BYTES, reply


def framed(body: bytes) -> bytes:
    """Return a whole HTTP response."""
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def configuration(port: int) -> dict[str, object]:
    """Return the configuration that the head server gives out."""
    address = {"entrypoint": "app.py", "host": "127.0.0.1", "port": port}
    resources = {"type": "resources_servers", "name": "stub_resources"}
    model = {"type": "responses_api_models", "name": "policy_model"}
    fronted = {"type": "responses_api_agents", "name": "stub_agent"}
    agent = address | {"resources_server": resources, "model_server": model}
    return {
        "stub_resources": {"resources_servers": {"stub": address | {"domain": "agent", "verified": False}}},
        "policy_model": {"responses_api_models": {"stub": address}},
        "stub_agent": {"responses_api_agents": {"simple_agent": agent}},
        "stub_environment": {"environment_servers": {"legacy_agent": address | {"agent_server": fronted}}},
        "head_server": {"host": "127.0.0.1", "port": port},
    }


class Answering(asyncio.Protocol):
    """One connection, on which one request follows another."""

    def __init__(self, answers: dict[bytes, bytes]) -> None:
        self._answers = answers
        self._heard = bytearray()
        self._left = -1
        self._path = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep where answers go."""
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every request that is whole; of its body nothing is kept."""
        self._heard += data
        while self._request_is_whole():
            self._transport.write(self._answers.get(self._path, self._answers[b""]))

    def _request_is_whole(self) -> bool:
        if self._left < 0:
            end = self._heard.find(b"\r\n\r\n")
            if end < 0:
                return False
            head = bytes(self._heard[:end]).lower()
            del self._heard[: end + 4]
            self._left = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            self._path = head.split(b" ", 2)[1]
        taken = min(self._left, len(self._heard))
        del self._heard[:taken]
        self._left -= taken
        if self._left:
            return False
        self._left = -1
        return True


async def serve(port: int, size: int) -> None:
    """Answer until the process is ended."""
    answers = {
        b"/run": framed(json.dumps(reply(size - 160), separators=(",", ":")).encode()),
        b"/global_config_dict_yaml": framed(json.dumps(json.dumps(configuration(port))).encode()),
        b"/aggregate_metrics": framed(b'{"agent_metrics":{},"key_metrics":{},"group_level_metrics":[]}'),
        b"": framed(b'{"status":"ok"}'),
    }
    server = await asyncio.get_running_loop().create_server(lambda: Answering(answers), "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(serve(int(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else RESULT_BYTES))

"""A loopback server that answers every rollout at once with the same reply, and is its own head server.

`python stub.py PORT` serves until it is ended; the word `ready` on standard output says that it listens.
"""

import asyncio
import json
import sys

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


async def serve(port: int) -> None:
    """Answer until the process is ended."""
    run = framed(json.dumps(reply(RESULT_BYTES - 160), separators=(",", ":")).encode())
    head = framed(json.dumps(json.dumps(configuration(port))).encode())
    others = framed(b'{"status":"ok"}')

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                asked = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = asked.partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
                await reader.readexactly(int(length or 0))
                path = asked.split(b" ", 2)[1]
                writer.write(run if path.endswith(b"/run") else head if b"global_config" in path else others)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answered, "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))

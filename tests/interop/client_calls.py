"""What a server client is told by a deployment: run by either interpreter, as `client_calls.py {ours,theirs} PORT ROW`.

Prints one JSON object: the status and the reply of each call, and the names of the cookies that came with it.
"""

import asyncio
import json
import sys

_, SIDE, PORT, TEXT = sys.argv
del sys.argv[1:]  # the field's modules take them for overrides
if SIDE == "ours":
    from rollbook import BaseServerConfig, ServerClient, get_response_json
else:
    from nemo_gym.config_types import BaseServerConfig
    from nemo_gym.server_utils import ServerClient, get_response_json

ROW = json.loads(TEXT)
PART = {"type": "output_text", "text": f"\\boxed{{{ROW['expected_answer']}}}", "annotations": []}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [PART]}
RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "created_at": 1.0,
    "model": "m",
    "output": [MESSAGE],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
CALLS = (
    ("mcqa", "/seed_session", ROW),
    ("mcqa", "/verify", ROW | {"response": RESPONSE}),
    ("mcqa", "/verify", {"response": "none"}),
    (
        "mcqa",
        "/aggregate_metrics",
        {"verify_responses": [{"_ng_task_index": 0, "_ng_rollout_index": 0, "reward": 1.0}]},
    ),
    ("mcqa", "/nowhere", {}),
    ("example_single_tool_call", "/get_weather", {"city": "Oslo"}),
    ("policy_model", "/v1/responses", ROW["responses_create_params"]),
    ("policy_model", "/v1/responses", {"input": "hello", "no_such_field": 1}),
    ("mcqa_simple_agent", "/v1/responses", ROW["responses_create_params"]),
    ("mcqa_simple_agent", "/run", ROW),
    ("mcqa_environment_server", "/run", ROW),
)


async def told(client: ServerClient, server: str, path: str, body: dict) -> dict:
    """Return what one call is answered."""
    reply = await client.post(server_name=server, url_path=path, json=body)
    said = await get_response_json(reply)
    return {"call": f"{server}{path}", "status": reply.status, "cookies": sorted(reply.cookies), "said": said}


async def main() -> None:
    """Make every call, and print what came of them."""
    client = ServerClient.load_from_global_config(BaseServerConfig(host="127.0.0.1", port=int(PORT)))
    sys.stdout.write(json.dumps([await told(client, *call) for call in CALLS]) + "\n")


asyncio.run(main())

"""A simple agent between a scripted model and a scripted environment, and what they are asked with."""

from responses_api_agents.simple_agent.app import SimpleAgent, SimpleAgentConfig
from unit.servers_kinds.playground import AGENTS, EPISODE, MODELS, RESOURCES, TASK, Entry, Scripted, call, playing

MODEL_REF = {"type": "responses_api_models", "name": "model"}
TOOLS_REF = {"type": "resources_servers", "name": "colours"}
ASKED = {"input": "Which colour?"}
ROW = {"responses_create_params": ASKED, "expected": "teal", "_ng_task_index": 3, "_ng_rollout_index": 0}


class Bench:
    """A simple agent between a scripted model and a scripted environment."""

    def __init__(self, *replies, tools=None, agent=SimpleAgent, **config) -> None:
        self.agent = agent
        self.model = Scripted({"/v1/responses": list(replies)}, sets_cookie="model")
        self.tools = Scripted(tools or {}, sets_cookie="colours")
        self.config = {"resources_server": TOOLS_REF, **config}

    def build(self, client):
        frame = {"host": "h", "port": 1, "entrypoint": "app.py", "name": "agent", "model_server": MODEL_REF}
        return self.agent(config=SimpleAgentConfig(**frame, **self.config), server_client=client)

    async def post(self, path, body=ASKED, **top):
        async with self.playing(**top) as playground:
            return await playground.post("agent", path, body)

    def playing(self, **top):
        servers = {
            "agent": Entry(AGENTS, self.build),
            "model": Entry(MODELS, self.model.app),
            "colours": Entry(RESOURCES, self.tools.app),
        }
        return playing(servers, **top)

    async def tool_call(self, *, in_session=False, path="/v1/responses", at=None, **top):
        """Post the request, outside of a session or in one with direct access to the tools, as if at the URL `at`."""
        async with self.playing(**top) as playground:
            access = direct(playground, **({"base_url": at} if at else {}))
            seed = {**SEED, "tool_accesses": [access]}
            seeded = await playground.post("agent", "/v1/agent_sessions", seed) if in_session else None
            return await playground.post("agent", path, ASKED, cookies=seeded.cookies if seeded else {})

    def inputs(self):
        """Return what the model was given, call by call, as short names."""
        return [[short(item) for item in body["input"]] for body in self.model.bodies("/v1/responses")]


def short(item):
    kind = item.get("type", "message")
    if kind == "function_call":
        return f"call {item['name']}"
    return f"output {item['output']}" if kind == "function_call_output" else item.get("role", kind)


TEAL = call("look_up", '{"name":"teal"}')
SEED = {"agent_session_id": "a1", "episode_id": EPISODE, "task_id": TASK}
CLOSE = {"agent_session_id": "a1", "episode_id": EPISODE}


def direct(playground, **given):
    url = playground.client._address("colours")
    return {"kind": "direct_http", "name": "t", "required": True, "base_url": url, **given}

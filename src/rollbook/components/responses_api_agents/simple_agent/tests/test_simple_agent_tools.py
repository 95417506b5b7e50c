import json

import pytest

from ports import free_ports
from responses_api_agents.simple_agent.tests.bench import TEAL, Bench
from responses_api_agents.simple_agent.tools import tool_output
from rollbook import NeMoGymResponseFunctionToolCall
from rollbook.servers.http.embedded_registry import register_embedded, unregister_embedded
from unit.servers_kinds.playground import Scripted, call, message, reply_with


async def test_arguments_that_are_no_json_are_answered_without_a_call():
    bench = Bench(reply_with(call("look_up", "{name: teal")), reply_with(message("x")), tools={"/look_up": [{}]})
    answer = await bench.post("/v1/responses")
    said = json.loads(answer.body["output"][1]["output"])
    assert said["error"].startswith("Invalid tool call arguments: JSONDecodeError('Expecting property name")
    assert bench.tools.asked == []


BEYOND_JSON = [
    ("[" * 100_000, "RecursionError("),
    ("9" * 5_000, "ValueError("),
    ("[" * 300 + "]" * 299, "JSONDecodeError("),
]


@pytest.mark.parametrize(("arguments", "kind"), BEYOND_JSON)
async def test_arguments_too_deep_or_too_long_are_answered_without_a_call(arguments, kind):
    bench = Bench(reply_with(call("look_up", arguments)), reply_with(message("x")), tools={"/look_up": [{}]})
    answer = await bench.post("/v1/responses")
    said = json.loads(answer.body["output"][1]["output"])
    assert said["error"].startswith(f"Invalid tool call arguments: {kind}")
    assert bench.tools.asked == []


async def test_arguments_that_cannot_be_sent_on_are_answered_too():
    class Shallow:
        async def post(self, name, arguments):
            raise RecursionError("too deep")

    output = await tool_output(Shallow(), NeMoGymResponseFunctionToolCall(call_id="c", name="f", arguments="[]"))
    assert json.loads(output.output)["error"] == "Invalid tool call arguments: RecursionError('too deep')"


NO_TOOLS = ["verify", "seed_session", "close_session", "aggregate_metrics", "reverify_mode", "mcp", ".", ".."]
NO_NAMES = [
    "",
    "a/b",
    "verify/",
    "seed_session/",
    "ng-rollout/x/verify",
    "verify%2f",
    "verify?x",
    "verify#",
    "caf\u00e9",
    "v\n",
]


@pytest.mark.parametrize("name", [*NO_TOOLS, *NO_NAMES])
@pytest.mark.parametrize("in_session", [False, True])
async def test_what_is_no_tools_name_is_not_found_and_nothing_is_asked(name, in_session):
    bench = Bench(reply_with(call(name, "{}")), reply_with(message("x")), tools={f"/{name}": [{"reward": 1.0}]})
    answer = await bench.tool_call(in_session=in_session)
    assert answer.body["output"][1]["output"] == '{"detail":"Not Found"}'
    assert bench.tools.asked == []


@pytest.mark.parametrize("name", ["unknown", "Look-up_2.now"])
async def test_a_tool_that_is_not_there_is_not_found_by_its_server(name):
    bench = Bench(reply_with(call(name, "{}")), reply_with(message("x")))
    assert (await bench.tool_call()).body["output"][1]["output"] == '{"detail":"Not Found"}'
    assert bench.tools.paths() == [f"/{name}"]


@pytest.mark.parametrize("in_session", [False, True])
async def test_a_redirect_of_a_tool_is_not_followed(in_session):
    tools = {"/look_up": [(307, "/verify")], "/verify": [{"reward": 1.0}]}
    bench = Bench(reply_with(TEAL), reply_with(message("x")), tools=tools)
    answer = await bench.tool_call(in_session=in_session)
    assert (answer.body["output"][1]["output"], bench.tools.paths()) == ("", ["/look_up"])


@pytest.mark.parametrize("in_session", [False, True])
@pytest.mark.parametrize(("observes", "path"), [(False, "/look_up"), (True, "/ng-rollout/3-0-a1/look_up")])
async def test_a_tool_is_called_for_the_rollout_that_the_agent_works_for(in_session, observes, path):
    bench = Bench(tools={path: [{"hex": 1}]})
    model_path = "/ng-rollout/3-0-a1/v1/responses" if observes else "/v1/responses"
    bench.model.script = {model_path: [reply_with(TEAL), reply_with(message("teal"))]}
    answer = await bench.tool_call(
        in_session=in_session, path="/ng-rollout/3-0-a1/v1/responses", observability_enabled=observes
    )
    assert answer.body["output"][1]["output"] == '{"hex":1}'
    assert (bench.tools.paths(), bench.tools.rollouts) == ([path], ["3-0-a1"])


async def test_a_tool_server_of_somebody_else_is_sent_no_prefix():
    foreign = Scripted({"/look_up": [{"hex": 2}]})
    bench = Bench()
    bench.model.script = {"/ng-rollout/3-0/v1/responses": [reply_with(TEAL), reply_with(message("teal"))]}
    (port,) = free_ports(1)
    server = register_embedded("127.0.0.1", port, foreign.app())
    try:
        path, at = "/ng-rollout/3-0/v1/responses", f"http://127.0.0.1:{port}"
        answer = await bench.tool_call(in_session=True, path=path, at=at, observability_enabled=True)
    finally:
        unregister_embedded(server)
        await server.close()
    assert answer.body["output"][1]["output"] == '{"hex":2}'
    assert foreign.paths() == ["/look_up"]

"""The reference loop: ask the model, run its tool calls one after the other, until it answers or its steps are up.

Rules:
* The output holds what the model wrote and what its tools answered, in order; usage is the sum over all calls.
* A model is given its own words again as it wrote them; what was sent to it is not changed afterwards.
* A tool's error is text that the model sees; a model's error ends the request.
* A verified row goes out as its verifier wrote it where its class would take it so; else as its class reads it.
* Steps are counted by model calls, and the limit is looked at after the tools ran.

Source: servers.md §6.1.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from aiohttp import ClientResponse
from fastapi import HTTPException, Request, Response
from pydantic import ConfigDict

from responses_api_agents.simple_agent.tools import DirectTools, ServerTools, Tools, tool_output
from responses_api_agents.simple_agent.verified_rows import is_verified
from rollbook import (
    AgentCloseSessionResponse,
    AgentSeedSessionRequest,
    AgentSessionState,
    AggregateMetrics,
    AggregateMetricsRequest,
    BaseResponsesAPIAgentConfig,
    BaseRunRequest,
    BaseVerifyResponse,
    DirectHTTPToolAccess,
    MCPToolAccess,
    ModelServerRef,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseFunctionToolCall,
    ResourcesServerRef,
    SimpleResponsesAPIAgent,
    accumulate_response_usage,
    get_response_json,
    merged_cookies,
    raise_for_status,
    set_cookies,
)

BAD_REQUEST: Final = 400
UNPROCESSABLE: Final = 422
UNFINISHED: Final = {
    "empty_output": "The model's response has no output.",
    "incomplete_reasoning": "The model's response has neither a message nor a tool call.",
}


class SimpleAgentConfig(BaseResponsesAPIAgentConfig):
    """`max_steps` bounds the model calls of one request; `execute_tools` false leaves tool calls unanswered."""

    resources_server: ResourcesServerRef | None = None
    model_server: ModelServerRef
    max_steps: int | None = None
    execute_tools: bool = True


class SimpleAgentRunRequest(BaseRunRequest):
    """A row, whatever else it carries."""

    model_config = ConfigDict(extra="allow")


class SimpleAgentVerifyResponse(BaseVerifyResponse):
    """A verified row, whatever else its verifier says."""

    model_config = ConfigDict(extra="allow")


@dataclass(slots=True)
class SimpleAgentSessionState(AgentSessionState):
    """A session and its tools; None when it was given none."""

    tools: DirectTools | None = None


class SimpleAgent(SimpleResponsesAPIAgent):
    """An agent over one model server and the tools of one resources server, or of a session."""

    config: SimpleAgentConfig

    async def responses(
        self, request: Request, response: Response, body: NeMoGymResponseCreateParamsNonStreaming
    ) -> NeMoGymResponse:
        """Return the model's answer, after running the tools that it called on the way."""
        async with self.agent_session(request) as state:
            if state is None:
                self._require_tools("/v1/responses outside of an agent session")
            tools = self._tools(request, state)
            answer, model_cookies = await self._answer(body, tools)
            set_cookies(response, model_cookies)
            if state is None and tools is not None:
                set_cookies(response, tools.cookies)
            return answer

    async def run(self, request: Request, body: SimpleAgentRunRequest) -> SimpleAgentVerifyResponse:
        """Seed the environment with the row, answer it, and return it verified."""
        verified = await self._verified(request, body)
        row = verified if isinstance(verified, dict) else await get_response_json(verified)
        return SimpleAgentVerifyResponse.model_validate(row)

    @functools.wraps(run)
    async def _passed_on(self, request: Request, body: SimpleAgentRunRequest) -> Response | SimpleAgentVerifyResponse:
        verified = await self._verified(request, body)
        if isinstance(verified, dict):
            return SimpleAgentVerifyResponse.model_validate(verified)
        written = await verified.read()
        if is_verified(written):
            return Response(written, media_type="application/json")
        return SimpleAgentVerifyResponse.model_validate(await get_response_json(verified))

    def _run_for_the_wire(self) -> Callable[..., Any]:
        return self._passed_on if getattr(self.run, "__func__", None) is OWN_RUN else self.run

    async def aggregate_metrics(self, body: AggregateMetricsRequest) -> AggregateMetrics:
        """Ask the resources server, which knows its metrics; without verification compute the general ones here."""
        if self.config.skip_verification or self.config.resources_server is None:
            return await super().aggregate_metrics(body)
        reply = await self.server_client.post(
            server_name=self.config.resources_server.name, url_path="/aggregate_metrics", json=body
        )
        await raise_for_status(reply)
        return AggregateMetrics.model_validate(await get_response_json(reply))

    async def _seed_agent_session_state(self, body: AgentSeedSessionRequest) -> SimpleAgentSessionState:
        accesses = self.effective_tool_accesses(body)
        direct = [access for access in accesses if isinstance(access, DirectHTTPToolAccess)]
        needed = [access.name for access in accesses if isinstance(access, MCPToolAccess) and access.required]
        if body.sandbox_access is not None:
            raise HTTPException(UNPROCESSABLE, f"{self.config.name} works in no sandbox; use an agent that does")
        if len(direct) > 1:
            names = ", ".join(access.name for access in direct)
            raise HTTPException(UNPROCESSABLE, f"{self.config.name} uses one direct_http tool access; given: {names}")
        if needed:
            raise HTTPException(UNPROCESSABLE, f"{self.config.name} speaks no MCP, required by: {', '.join(needed)}")
        return SimpleAgentSessionState(body, DirectTools(direct[0], self.base_url_for_tools) if direct else None)

    async def _close_agent_session_state(self, state: AgentSessionState) -> AgentCloseSessionResponse:
        tools = state.tools if isinstance(state, SimpleAgentSessionState) else None
        return AgentCloseSessionResponse(
            agent_session_id=state.agent_session_id, resources_cookies=tools.cookies if tools else None
        )

    async def _answer(
        self, body: NeMoGymResponseCreateParamsNonStreaming, tools: Tools | None
    ) -> tuple[NeMoGymResponse, dict[str, str]]:
        asked = body.model_dump(exclude_unset=True)
        said = as_items(asked["input"])
        new: list[Any] = []
        usage = None
        cookies: dict[str, str] | None = None
        steps = 0
        while True:
            steps += 1
            reply, written, cookies = await self._ask_model({**asked, "input": said}, cookies)
            said = [*said, *written]
            new.extend(reply.output)
            usage = reply.usage if usage is None else accumulate_response_usage(usage, reply.usage)
            calls = tool_calls(reply)
            if reply.incomplete_details is None and not calls:
                mark_unfinished(reply)
            if reply.incomplete_details is not None or not calls or not self.config.execute_tools:
                break
            outputs = [await tool_output(self._required(tools, call), call) for call in calls]
            said = [*said, *(output.model_dump(exclude_unset=True) for output in outputs)]
            new += outputs
            if self.config.max_steps and steps >= self.config.max_steps:
                break
        reply.output = new
        reply.usage = usage
        return reply, cookies

    async def _ask_model(
        self, asked: Mapping[str, Any], cookies: dict[str, str] | None
    ) -> tuple[NeMoGymResponse, list[Any], dict[str, str]]:
        """Return the model's answer, its output as it is to be said again, and the model's cookies."""
        name = self.config.model_server.name
        reply = await self.server_client.post(server_name=name, url_path="/v1/responses", json=asked, cookies=cookies)
        await raise_for_status(reply)
        try:
            written = await get_response_json(reply)
            answer = NeMoGymResponse.model_validate(written)
        except ValueError as error:
            raise RuntimeError(f"the model server {name!r} answered no response: {error}") from error
        return answer, [said_again(item) for item in written["output"]], merged_cookies(cookies, reply)

    async def _verified(self, request: Request, body: SimpleAgentRunRequest) -> ClientResponse | dict[str, object]:
        """Return the verifier's reply to a row, seeded and answered; the row itself where nothing is verified."""
        self._require_tools("/run")
        environment = self._environment()
        cookies = merged_cookies(None, request.cookies)
        row = body.model_dump(exclude_unset=True)
        seeded = await self.server_client.post(
            server_name=environment, url_path="/seed_session", json=row, cookies=cookies
        )
        await raise_for_status(seeded)
        cookies = merged_cookies(cookies, seeded)
        answered = await self.server_client.post(
            server_name=self.config.name,
            url_path=self.url_path_for_run("/v1/responses", body),
            json=row["responses_create_params"],
            cookies=cookies,
        )
        await raise_for_status(answered)
        cookies = merged_cookies(cookies, answered)
        row["response"] = await get_response_json(answered)
        if self.config.skip_verification:
            return {**row, "reward": self.config.skip_verification_reward, "verification_skipped": True}
        verified = await self.server_client.post(server_name=environment, url_path="/verify", json=row, cookies=cookies)
        await raise_for_status(verified)
        return verified

    def _tools(self, request: Request, state: AgentSessionState | None) -> Tools | None:
        if isinstance(state, SimpleAgentSessionState):
            return state.tools
        if self.config.resources_server is None:
            return None
        cookies = merged_cookies(None, request.cookies)
        return ServerTools(self.server_client, self.config.resources_server.name, cookies)

    def _required(self, tools: Tools | None, call: NeMoGymResponseFunctionToolCall) -> Tools:
        if tools is None:
            raise RuntimeError(
                f"the model called {call.name!r}, and {self.config.name} has no tools here: "
                "give the session a direct_http tool access, or the agent a resources_server"
            )
        return tools

    def _require_tools(self, what: str) -> None:
        if not self.config.execute_tools:
            raise HTTPException(BAD_REQUEST, f"{self.config.name} has execute_tools: false, and {what} runs tools")

    def _environment(self) -> str:
        if self.config.resources_server is None:
            raise HTTPException(BAD_REQUEST, f"{self.config.name} has no resources_server, and /run needs one")
        return self.config.resources_server.name


OWN_RUN: Final = SimpleAgent.run


def said_again(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item of a model's output as its next input has it: no request takes back the status of a thought."""
    if item["type"] != "reasoning" or "status" not in item:
        return item
    return {key: value for key, value in item.items() if key != "status"}


def as_items(given: str | list[Any]) -> list[Any]:
    """Return an input as a list of JSON items; a string is one user message."""
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def tool_calls(response: NeMoGymResponse) -> list[NeMoGymResponseFunctionToolCall]:
    """Return the calls of function tools in a response."""
    return [item for item in response.output if isinstance(item, NeMoGymResponseFunctionToolCall)]


def mark_unfinished(response: NeMoGymResponse) -> None:
    """Say on a response without calls why it is no answer; one with an assistant's message is one."""
    if any(item.type == "message" and item.role == "assistant" for item in response.output):
        return
    reason = "incomplete_reasoning" if response.output else "empty_output"
    response.status = "incomplete"
    response.metadata = {
        **(response.metadata or {}),
        "ng_termination_reason": reason,
        "ng_termination_message": UNFINISHED[reason],
    }


if __name__ == "__main__":
    SimpleAgent.run_webserver()

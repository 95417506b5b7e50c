"""Answers in a given structure: the reward is 1 when the response is in its format and fits the row's schema, else 0.

Rules:
* The whole text is the answer, without a fence and without a word around it; in `tool_call` mode the arguments of the
  one call are.
* Texts are checked in processes of their own, for a limited time.
* A row whose schema cannot be used is no measure: its reward is masked. So is an answer of ordinary length that the
  schema did not let be checked in time; one that is too long to be checked is worth nothing.

Source: servers.md §7.3 (6).
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import Any, ClassVar, Final, Literal

from fastapi import FastAPI
from pydantic import ConfigDict, Field, PrivateAttr

from resources_servers.structured_outputs.answers import arguments_of, text_of
from resources_servers.structured_outputs.facets import facet_means
from resources_servers.structured_outputs.questions import Fault, Question
from resources_servers.structured_outputs.workers import CheckerPool, require_library
from rollbook import (
    VERIFIER_ERROR,
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ReverifyMode,
    SimpleResourcesServer,
)

LONG_TEXT: Final = 100_000


class StructuredOutputsConfig(BaseResourcesServerConfig):
    """Whether texts in XML are typed by the schema, and how many seconds an answer may take to check."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS

    xml_coerce_types: bool = True
    check_timeout_seconds: float = Field(default=10, gt=0)


class StructuredOutputsRunRequest(BaseRunRequest):
    """A row: the schema, the format, and where the answer is to stand."""

    model_config = ConfigDict(extra="allow")

    schema_str: str
    schema_type: Literal["json", "yaml", "xml", "toml", "csv"] = "json"
    response_mode: str | None = None
    tool_name: str | None = None
    tool_payload_key: str | None = None


class StructuredOutputsVerifyRequest(StructuredOutputsRunRequest, BaseVerifyRequest):
    """A row with its response."""


class StructuredOutputsVerifyResponse(BaseVerifyResponse):
    """The row with its reward, and what is wrong with the answer, null when nothing is."""

    model_config = ConfigDict(extra="allow")

    error_type: str | None
    error_message: str | None


class StructuredOutputsResourcesServer(SimpleResourcesServer):
    """Checks that answers fit schemas."""

    config: StructuredOutputsConfig

    _checkers: CheckerPool | None = PrivateAttr(default=None)

    def setup_webserver(self) -> FastAPI:
        """Return the application.

        Raises:
            MissingPackageError: the validating library is not installed.

        """
        require_library()
        app = super().setup_webserver()
        app.router.lifespan_context = self._lifespan
        return app

    async def verify(self, body: StructuredOutputsVerifyRequest) -> StructuredOutputsVerifyResponse:
        """Return the row with reward 1 or 0; masked when its schema cannot be used, or nothing was decided in time."""
        row = body.model_dump(exclude={"response"}) | {"response": body.response}
        found: dict[str, Any] = {"error_type": None, "error_message": None, "reward": 0.0}
        try:
            fault = await self._fault(body)
        except TimeoutError as error:
            return StructuredOutputsVerifyResponse(**(row | found | _masked(str(error))))
        if fault is None:
            return StructuredOutputsVerifyResponse(**(row | found | {"reward": 1.0}))
        mask = _masked(f"schema_str: {fault.error_message}") if fault.error_type == "schema_error" else {}
        return StructuredOutputsVerifyResponse(**(row | found | asdict(fault) | mask))

    def compute_metrics(self, tasks: list[list[dict[str, Any]]]) -> dict[str, Any]:
        """Return `mean/reward_<facet>` of every facet that rows name."""
        return facet_means(result for task in tasks for result in task)

    async def _fault(self, body: StructuredOutputsVerifyRequest) -> Fault | None:
        is_tool_call = body.response_mode == "tool_call"
        text = arguments_of(body.response, body.tool_name) if is_tool_call else text_of(body.response)
        if isinstance(text, Fault):
            return text
        if is_tool_call:
            question = Question(body.schema_str, text, is_tool_call=True, payload_key=body.tool_payload_key)
        else:
            question = Question(body.schema_str, text, body.schema_type, coerce_xml=self.config.xml_coerce_types)
        if self._checkers is None:
            self._checkers = CheckerPool(self.config.check_timeout_seconds)
        try:
            found = await self._checkers.ask(question)
        except TimeoutError as error:
            if len(text) <= LONG_TEXT:
                raise
            return Fault("validation_error", f"{error}: the answer has {len(text)} characters")
        return Fault(**found) if found else None

    @asynccontextmanager
    async def _lifespan(self, _app: FastAPI) -> AsyncIterator[None]:
        try:
            yield
        finally:
            checkers, self._checkers = self._checkers, None
            if checkers is not None:
                await checkers.close()


def _masked(reason: str) -> dict[str, Any]:
    return {"mask_sample": True, "failure_kind": VERIFIER_ERROR, "failure_reason": reason}


if __name__ == "__main__":
    StructuredOutputsResourcesServer.run_webserver()

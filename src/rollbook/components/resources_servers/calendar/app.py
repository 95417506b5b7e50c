"""A calendar kept over several turns: the reward is 1 when it holds every event as the user asked for it.

Rules:
* The calendar is read from the last item of the response; a reply that shows its thoughts (`<think>`) is worth 0.
* A row that expects no event is worth 1 for any words.
* A row whose times or constraints cannot be read cannot be graded: its reward is masked.

Source: servers.md §7.3 (10).
"""

from typing import ClassVar, Final

from pydantic import ConfigDict, Field

from resources_servers.calendar.schedule import ExpectedEvent, is_right, read
from rollbook import (
    VERIFIER_ERROR,
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    NeMoGymResponse,
    ReverifyMode,
    SimpleResourcesServer,
)

THOUGHTS: Final = "<think>"


class CalendarConfig(BaseResourcesServerConfig):
    """Nothing but what every resources server has."""

    REVERIFY_MODE: ClassVar[ReverifyMode] = ReverifyMode.STATELESS


class CalendarRunRequest(BaseRunRequest):
    """A row: the events that the calendar should hold, by id."""

    model_config = ConfigDict(extra="allow")

    exp_cal_state: dict[str, ExpectedEvent] = Field(default_factory=dict)


class CalendarVerifyRequest(CalendarRunRequest, BaseVerifyRequest):
    """A row with its response."""


class CalendarVerifyResponse(BaseVerifyResponse):
    """The row with its reward."""

    model_config = ConfigDict(extra="allow")


class CalendarResourcesServer(SimpleResourcesServer):
    """Grades calendars."""

    config: CalendarConfig

    async def verify(self, body: CalendarVerifyRequest) -> CalendarVerifyResponse:
        """Return the row with reward 1 or 0; masked when the row cannot be read."""
        row = body.model_dump(exclude={"response"}) | {"response": body.response}
        try:
            expected = read(body.exp_cal_state)
        except ValueError as error:
            failure = {"mask_sample": True, "failure_kind": VERIFIER_ERROR, "failure_reason": f"exp_cal_state: {error}"}
            return CalendarVerifyResponse(**(row | {"reward": 0.0} | failure))
        text = last_text(body.response)
        right = bool(text) and THOUGHTS not in text and (not expected or is_right(text, expected))
        return CalendarVerifyResponse(**(row | {"reward": float(right)}))


def last_text(response: NeMoGymResponse) -> str:
    """Return the text of a response's last item."""
    return response.model_copy(update={"output": response.output[-1:]}).output_text


if __name__ == "__main__":
    CalendarResourcesServer.run_webserver()

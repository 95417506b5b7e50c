"""One request of an episode to one of its servers, and the failure that it becomes when it fails.

Rules:
* A failure says in which stage what was asked of whom, and what came back.
* What may pass by itself (408, 425, 429, 5xx, a lost connection, a time that ran out) is not terminal; the rest is.

Source: servers.md §3.10.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

from aiohttp import ClientError, ClientResponseError
from pydantic import BaseModel

from rollbook import (
    FailureStage,
    HandledEpisodeError,
    NeMoGymResponse,
    ServerClient,
    SingleAgentTurnFailure,
    get_response_json,
    merged_cookies,
    raise_for_status,
)

PASSING_STATUSES: Final = frozenset({408, 425, 429})
SERVER_ERROR: Final = 500
REASON_CHARS: Final = 2000
Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(slots=True)
class Peer:
    """A server of the episode, in the stage that is asked of it; `cookies` is its jar."""

    client: ServerClient
    name: str
    stage: FailureStage
    cookies: dict[str, str]
    partial_response: NeMoGymResponse | None = None

    async def post(self, url_path: str, body: Mapping[str, object], answers: type[Answer]) -> Answer:
        """Return what the server answers, as `answers`.

        Raises:
            HandledEpisodeError: it answered 400 or more, something else, or nothing.

        """
        try:
            reply = await self.client.post(server_name=self.name, url_path=url_path, json=body, cookies=self.cookies)
            await raise_for_status(reply)
            self.cookies = merged_cookies(self.cookies, reply)
            return answers.model_validate(await get_response_json(reply))
        except ClientResponseError as error:
            raise self.failed(f"POST {url_path} answered {status_text(error)}", terminal=is_lasting(error)) from error
        except (ClientError, TimeoutError) as error:
            raise self.failed(f"POST {url_path} got no reply: {error!r}", terminal=False) from error
        except ValueError as error:
            raise self.failed(f"POST {url_path} answered something else: {error}", terminal=True) from error

    def failed(self, what: str, *, terminal: bool, kind: str | None = None) -> HandledEpisodeError:
        """Return the error that ends the episode in this stage."""
        return HandledEpisodeError(
            SingleAgentTurnFailure(
                failure_reason=f"{self.name}: {what}"[:REASON_CHARS],
                terminal=terminal,
                failure_kind=kind,
                stage=self.stage,
                partial_response=self.partial_response,
            )
        )


def is_lasting(error: ClientResponseError) -> bool:
    """Whether the same request would be answered with the same status again."""
    return error.status < SERVER_ERROR and error.status not in PASSING_STATUSES


def status_text(error: ClientResponseError) -> str:
    """Return status and body of an error reply."""
    body = getattr(error, "response_content", b"")
    return f"{error.status}: {body.decode('utf-8', 'replace')}"

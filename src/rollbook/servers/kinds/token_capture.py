"""What a model server asks of the capture of token ids: nothing of it is under way here.

Rules:
* Asked for the capture of the call that is being answered, there is none.
* A handler of another program's capture is refused when it is asked for, never given as one that keeps nothing.

Source: servers.md §3.9, §11.2.
"""

from collections.abc import Mapping
from typing import Any, NoReturn, Protocol

from rollbook.errors import ConfigError


class CaptureContext(Protocol):
    """The capture of one call."""

    external_staging: bool


class ExternalCaptureHandler(Protocol):
    """What has a model's own worker keep the tokens of a call."""

    def prepare_request(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return the request that has the worker keep them."""

    def prepare_response(self, completion: dict[str, Any]) -> None:
        """Take out of a completion what the worker added for this handler."""

    async def finalize_response(self, response: Mapping[str, Any]) -> None:
        """Have the worker file them under the response."""


def current_capture_context() -> CaptureContext | None:
    """Return the capture of the call that is being answered; there is none."""
    return None


def make_external_capture_handler(backend: str) -> NoReturn:
    """Refuse a handler for the workers of `backend`.

    Raises:
        ConfigError: always.

    """
    msg = f"`token_id_capture.external_staging` with {backend}: no such capture is here; set it to false"
    raise ConfigError(msg)

"""A client of an OpenAI-compatible endpoint.

Rules:
* Every method answers parsed JSON; an HTTP error that is not worth another try raises with the endpoint's own words.
* Once an endpoint refused for good, this client asks it nothing more.
* The key is in no message and in no log line, and an address is shown without what may be secret in it.
* A call whose connection broke is sent again; one that ran out of time is not: its generation may still be paid for.

Source: servers.md §4.4.
"""

import logging
import random
from collections.abc import Callable, Mapping
from typing import Any

from aiohttp import ClientError, ClientResponse
from pydantic import BaseModel, Field, PrivateAttr

from rollbook.clock import Clock, SystemClock
from rollbook.errors import PermanentEndpointError, ServingError
from rollbook.records.failure_kinds import Delivery
from rollbook.records.json_values import JsonObject
from rollbook.servers.http.delivery import delivery_of_error, may_try_again
from rollbook.servers.http.http_client import MAX_NUM_TRIES, InnerServerError, request
from rollbook.servers.http.redaction import redacted_url
from rollbook.servers.kinds.model_server_text import parsed_reply
from rollbook.servers.openai.openai_retry import (
    RATE_LIMIT_ERROR_CODES,
    RETRY_ERROR_CODES,
    RETRY_SECONDS,
    Patience,
    Spent,
    is_free,
    next_wait,
    permanent_code,
    retry_after_seconds,
)

__all__ = ["RATE_LIMIT_ERROR_CODES", "RETRY_ERROR_CODES", "NeMoGymAsyncOpenAI", "PermanentEndpointError"]

_LOG = logging.getLogger(__name__)
_EXCERPT = 400
_ERRORS_FROM = 400
_NOTHING_YET = Spent()


class NeMoGymAsyncOpenAI(BaseModel):
    """An endpoint's base URL (with its `/v1`) and the key for it.

    `internal` says that the endpoint is one of ours, whose rate limits cost no attempts; all waiting of one call
    together stays within `max_wait_seconds`. A generation changes nothing at the endpoint, so a call whose connection
    broke is sent again; an endpoint that cannot be connected to is tried for `connect_grace_seconds`.
    """

    base_url: str
    api_key: str = Field(repr=False)
    internal: bool = False
    max_connection_retries: int | None = None
    max_http_attempts: int = 3
    default_headers: dict[str, str] = Field(default_factory=dict, repr=False)
    max_wait_seconds: float = 300.0
    connect_grace_seconds: float = 20.0

    _clock: Clock = PrivateAttr(default_factory=SystemClock)
    _chance: Callable[[], float] = PrivateAttr(default_factory=lambda: random.SystemRandom().random)
    _refusal: str | None = PrivateAttr(default=None)

    async def create_models(self) -> JsonObject:
        """GET /models."""
        return await self._call("GET", self._url("/models"), None)

    async def create_chat_completion(self, **body: Any) -> JsonObject:
        """POST /chat/completions."""
        return await self._call("POST", self._url("/chat/completions"), body)

    async def create_completion(self, **body: Any) -> JsonObject:
        """POST /completions."""
        return await self._call("POST", self._url("/completions"), body)

    async def create_response(self, **body: Any) -> JsonObject:
        """POST /responses."""
        return await self._call("POST", self._url("/responses"), body)

    async def create_tokenize(self, **body: Any) -> JsonObject:
        """POST /tokenize, which stands beside `/v1`, not under it."""
        base = self.base_url.rstrip("/").removesuffix("/v1")
        return await self._call("POST", f"{base}/tokenize", body)

    def _url(self, path: str) -> str:
        return self.base_url.rstrip("/") + path

    async def _call(self, method: str, url: str, body: JsonObject | None) -> JsonObject:
        shown = redacted_url(url)
        spent = _NOTHING_YET
        while True:
            self._refuse_if_tripped()
            response = await self._connected(method, url, body)
            content = await response.read()
            if response.status < _ERRORS_FROM:
                return _json_object(shown, content)
            self._trip_if_permanent(shown, response.status, content)
            patience = Patience(self.max_http_attempts, self.max_wait_seconds, rate_limits_are_free=self.internal)
            hint = retry_after_seconds(response.headers.get("Retry-After"), self._clock.now())
            free = is_free(response.status, hint, patience)
            spent = Spent(spent.attempts + (not free), spent.seconds)
            wait = next_wait(response.status, hint, self._chance(), patience, spent)
            if wait is None:
                raise _final_error(response, content)
            _LOG.info("%s answered HTTP %d; asked again in %.1f s", shown, response.status, wait)
            await self._clock.sleep(wait)
            spent = Spent(spent.attempts, spent.seconds + wait)

    async def _connected(self, method: str, url: str, body: JsonObject | None) -> ClientResponse:
        """Send until a reply comes, `MAX_NUM_TRIES` times or as often as configured where the connection breaks."""
        tries = 0
        while True:
            tries += 1
            try:
                return await self._send(method, url, body)
            except ClientError as error:
                if not _broke(error) or tries >= (self.max_connection_retries or MAX_NUM_TRIES):
                    raise
                _LOG.warning("%s broke the connection: %s; asked again", redacted_url(url), type(error).__name__)
            await self._clock.sleep(RETRY_SECONDS)

    async def _send(self, method: str, url: str, body: JsonObject | None) -> ClientResponse:
        headers = {"Authorization": f"Bearer {self.api_key}", **self.default_headers}
        options: Mapping[str, Any] = {"headers": headers} if body is None else {"headers": headers, "json": body}
        return await request(
            method,
            url,
            _internal=self.internal,
            _max_connection_retries=self.max_connection_retries,
            _connect_grace=self.connect_grace_seconds,
            _model_call=True,
            **options,
        )

    def _refuse_if_tripped(self) -> None:
        if self._refusal is not None:
            raise PermanentEndpointError(self._refusal)

    def _trip_if_permanent(self, shown: str, status: int, body: bytes) -> None:
        code = permanent_code(status, body)
        if code is not None:
            self._refusal = (
                f"the model endpoint refused for good: HTTP {status} {code} from {shown}: {_excerpt(body)}; "
                "check the key and the budget of this endpoint's configuration, then start again"
            )
            self._refuse_if_tripped()


def _final_error(response: ClientResponse, body: bytes) -> InnerServerError:
    """The error whose content says status and address too: it goes up the chain as the only trace of the endpoint."""
    url = redacted_url(str(response.url))
    content = f"HTTP {response.status} from {url}: ".encode() + body
    reason = (response.status, response.reason or "")
    return InnerServerError(response.method, url, reason, dict(response.headers), content)


def _excerpt(body: bytes) -> str:
    return body[:_EXCERPT].decode("utf-8", "replace")


def _json_object(shown: str, body: bytes) -> JsonObject:
    decoded = parsed_reply(body)
    if isinstance(decoded, dict):
        return decoded
    msg = (
        f"{shown} answered something that is no JSON object: {_excerpt(body)!r}; is this an OpenAI-compatible endpoint?"
    )
    raise ServingError(msg)


def _broke(error: ClientError) -> bool:
    """Whether the connection went away under a request that it had taken; `request` sends the others again itself."""
    if isinstance(error, TimeoutError) or delivery_of_error(error) is Delivery.NOT_SENT:
        return False
    return may_try_again(error, replay=True)

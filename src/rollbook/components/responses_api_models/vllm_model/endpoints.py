"""Which replica a session is served by.

Rules:
* A session stays with its replica, so that the replica's prefix cache serves its next turn.
* An endpoint file is read again at most once per interval; while it is missing the last reading holds, for a grace.

Source: servers.md §5.4, point 1.
"""

import hashlib
import json
import time
from collections.abc import Callable
from pathlib import Path

from responses_api_models.vllm_model.model_config import VLLMModelConfig
from rollbook import NeMoGymAsyncOpenAI, ServingError


def replica_of(session_id: str, count: int) -> int:
    """The replica's number for a session."""
    return int.from_bytes(hashlib.sha256(session_id.encode()).digest()) % count


def urls_in(text: str) -> list[str]:
    """The URLs in an endpoint file: a string, a list, or an object whose `base_url` is either.

    Raises:
        ValueError: the text holds no URL.

    """
    found = json.loads(text)
    if isinstance(found, dict):
        found = found.get("base_url") or found.get("base_urls")
    urls = [found] if isinstance(found, str) else found
    if isinstance(urls, list) and urls and all(isinstance(url, str) for url in urls):
        return urls
    msg = 'an endpoint file holds {"base_url": "http://…/v1"}, or a list of URLs'
    raise ValueError(msg)


class Endpoints:
    """The replicas of a configuration, each with one client for the life of the server."""

    def __init__(self, config: VLLMModelConfig, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._config = config
        self._monotonic = monotonic
        self._clients: dict[str, NeMoGymAsyncOpenAI] = {}
        self._urls = [config.base_url] if isinstance(config.base_url, str) else list(config.base_url)
        self._looked_at = float("-inf")
        self._read_at = monotonic()

    def client_of(self, session_id: str) -> NeMoGymAsyncOpenAI:
        """The client of the replica that serves this session."""
        urls = self._current_urls()
        url = urls[replica_of(session_id, len(urls))]
        if url not in self._clients:
            self._clients[url] = NeMoGymAsyncOpenAI(
                base_url=url,
                api_key=self._config.api_key,
                max_http_attempts=self._config.max_http_attempts,
                default_headers=self._config.default_headers,
                max_connection_retries=self._config.endpoint_connection_retries if self._config.endpoint_file else None,
            )
        return self._clients[url]

    def _current_urls(self) -> list[str]:
        now = self._monotonic()
        if self._config.endpoint_file and now - self._looked_at >= self._config.endpoint_check_interval_s:
            self._looked_at = now
            self._read_file(Path(self._config.endpoint_file), now)
        if not self._urls or not self._urls[0]:
            msg = f"the endpoint file {self._config.endpoint_file} is not there yet, and base_url is empty"
            raise ServingError(msg)
        return self._urls

    def _read_file(self, path: Path, now: float) -> None:
        try:
            self._urls = urls_in(path.read_text("utf-8"))
        except (OSError, ValueError) as error:
            if now - self._read_at > self._config.endpoint_stale_grace_s:
                msg = f"the endpoint file {path} has been unreadable for {now - self._read_at:.0f} s: {error}"
                raise ServingError(msg) from error
        else:
            self._read_at = now

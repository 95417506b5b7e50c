"""How long one exchange may take, from the settings and a caller's own limit as aiohttp reads them, and one start.

Rules:
* A caller's limit replaces the settings as a whole; a plain number is one on the whole exchange.
* A limit of 0 or less is no limit.

Source: servers.md §2.3, §4.1.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, cast

from aiohttp import ClientTimeout
from omegaconf import DictConfig

from rollbook.servers.http.client_settings import ClientSettings

SPINUP_KEY: Final = "server_spinup_timeout_seconds"
_SHORTEST: Final = 0.001
SPINUP_SECONDS: Final = 600.0


def spinup_seconds(config: Mapping[str, object] | DictConfig) -> float:
    """Return how many seconds each server of `config` may take to start."""
    given = config.get(SPINUP_KEY)
    return SPINUP_SECONDS if given is None else float(cast("float", given))


def default_timeout(settings: ClientSettings) -> ClientTimeout:
    """Return the limits of a call for which nobody gives other ones."""
    return ClientTimeout(
        total=settings.total_seconds, sock_connect=settings.connect_seconds, sock_read=settings.read_seconds
    )


def model_call_timeout(settings: ClientSettings, left: float | None = None) -> ClientTimeout:
    """Return the limits of a call of a model endpoint: the default ones, and the shortest of the whole times.

    `left` is what the rollout has left; a call that begins when nothing is left ends at once.
    """
    return _model_call_timeout(settings) if left is None else _within(settings, [max(left, _SHORTEST)])


@lru_cache(maxsize=4)
def _model_call_timeout(settings: ClientSettings) -> ClientTimeout:
    """Return the limits of a call that its rollout does not limit, which are those of most calls."""
    return _within(settings, [])


def _within(settings: ClientSettings, left: list[float]) -> ClientTimeout:
    given = [seconds for seconds in (settings.model_call_seconds, settings.total_seconds) if seconds]
    return ClientTimeout(
        total=min([*given, *left], default=None),
        sock_connect=settings.connect_seconds,
        sock_read=settings.read_seconds,
    )


def model_call_took_too_long(url: str, settings: ClientSettings, used: float | None) -> str:
    """Return what to say of a call of a model endpoint that used up its time, `used` seconds."""
    seconds = model_call_timeout(settings).total or 0.0
    if used is not None and (seconds == 0.0 or used < seconds):
        return f"the model endpoint at {url} gave no reply within the {used:g} s that the rollout had left"
    return (
        f"the model endpoint at {url} gave no reply within {seconds:g} s; allow more, or 0 for no limit: "
        "++global_aiohttp_model_call_timeout_seconds=<seconds>"
    )


def whole_and_silence(given: object, settings: ClientSettings) -> tuple[float | None, float | None]:
    """Return the limits on a whole exchange and on silence for a call whose `timeout` is `given`; None for no limit."""
    if given is None:
        return settings.total_seconds, settings.read_seconds
    if isinstance(given, ClientTimeout):
        return _limit(given.total), _limit(given.sock_read)
    return _limit(float(given)) if isinstance(given, (int, float)) else None, None


def _limit(seconds: float | None) -> float | None:
    return seconds if seconds is not None and seconds > 0 else None

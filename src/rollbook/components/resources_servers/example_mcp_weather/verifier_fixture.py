"""Answers whose rewards are known: `gym env validate example_mcp_weather` asks the verifier about them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from resources_servers.example_mcp_weather.app import (
    TOOL,
    McpWeatherResourcesServer,
    McpWeatherVerifyRequest,
    VerifierMetadata,
    weather_of,
)
from rollbook import VerifierFixture, replay_episode, unserved_server


def gold_answer(row: Mapping[str, object]) -> list[dict[str, Any] | str]:
    """Return the answer to a row that is worth the best reward: the question to the tool, and its sentence."""
    city = VerifierMetadata.model_validate(row["verifier_metadata"]).expected_city
    return [{"name": TOOL, "arguments": {"city": city}}, weather_of(city)]


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=lambda: unserved_server(McpWeatherResourcesServer),
    request_model=McpWeatherVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
    invoke=replay_episode,
)

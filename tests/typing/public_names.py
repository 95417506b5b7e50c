"""Code as a caller writes it; it is only type-checked, never run."""

from typing import Any, assert_type

from rollbook import (
    BaseResourcesServerConfig,
    BaseVerifyRequest,
    BaseVerifyResponse,
    ModelServerRef,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    ResourcesServerRef,
    RolloutCollectionHelper,
    RolloutFailure,
    RowResults,
    ServerClient,
    SimpleResourcesServer,
    capture_key,
    get_response_json,
    raise_for_status,
)


class CityRequest(BaseVerifyRequest):
    expected_answer: str


class CityResponse(BaseVerifyResponse):
    expected_answer: str


class Cities(SimpleResourcesServer):
    config: BaseResourcesServerConfig

    async def verify(self, body: CityRequest) -> CityResponse:
        assert_type(body.response, NeMoGymResponse)
        assert_type(body.responses_create_params, NeMoGymResponseCreateParamsNonStreaming)
        return CityResponse(**body.model_dump(), reward=1.0)


def cities_at(config: BaseResourcesServerConfig, client: ServerClient) -> Cities:
    return Cities(config=config, server_client=client)


async def asked(client: ServerClient, model: ModelServerRef, server: ResourcesServerRef) -> None:
    assert_type(model.name, str)
    assert_type(server.name, str)
    reply = await client.post(server_name=model.name, url_path="/v1/responses", json={"input": "?"})
    await raise_for_status(reply)
    await get_response_json(reply)


assert_type(capture_key("3-0", 1), str)


async def rewards_of(examples: list[dict[str, Any]]) -> list[float]:
    results = RolloutCollectionHelper(reuse_server_client=True).run_examples(examples, max_resident_tasks=8)
    assert_type(results, RowResults)
    rewards: list[float] = []
    try:
        for awaitable in results:
            row, outcome = await awaitable
            assert_type(row, dict[str, Any])
            if not isinstance(outcome, RolloutFailure):
                rewards.append(outcome["reward"])
    finally:
        for settled in await results.aclose_and_drain():
            assert_type(settled.result(), tuple[dict[str, Any], dict[str, Any] | RolloutFailure])
    return rewards

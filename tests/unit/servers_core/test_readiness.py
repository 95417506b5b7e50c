import asyncio

import pytest
from omegaconf import OmegaConf

from ports import free_ports
from rollbook.errors import EndpointNotReadyError
from rollbook.servers.http.waiting import until
from rollbook.servers.serving.readiness import (
    TIMEOUT_KEY,
    ModelEndpoint,
    model_endpoints,
    wait_for_endpoint,
    wait_for_model_endpoints,
)
from unit.servers_core.stand_ins import behind_a_socket, in_process, probe


def config(**top):
    block = {
        "entrypoint": "app.py",
        "openai_base_url": "${policy_base_url}",
        "pool": {"spare_base_url": "http://127.0.0.1:2"},
        "base_url": ["http://127.0.0.1:3/v1/", "http://127.0.0.1:4"],
        "other_base_url": None,
    }
    agent = {"entrypoint": "app.py", "base_url": "http://127.0.0.1:5"}
    return OmegaConf.create(
        {
            "policy_base_url": "http://127.0.0.1:1/v1",
            "policy_model": {"responses_api_models": {"openai_model": block}},
            "agent": {"responses_api_agents": {"x": agent}},
            **top,
        }
    )


def test_endpoints_are_the_base_urls_of_model_servers():
    prefix = "policy_model.responses_api_models.openai_model"
    found = model_endpoints(config())
    assert {(one.key, one.url) for one in found} == {
        (f"{prefix}.openai_base_url", "http://127.0.0.1:1/v1"),
        (f"{prefix}.pool.spare_base_url", "http://127.0.0.1:2"),
        (f"{prefix}.base_url", "http://127.0.0.1:3/v1"),
        (f"{prefix}.base_url", "http://127.0.0.1:4"),
    }
    assert {one.probe_url for one in found if one.url.endswith("/v1")} == {
        "http://127.0.0.1:1/v1/models",
        "http://127.0.0.1:3/v1/models",
    }


async def test_any_answer_means_ready():
    async with in_process(probe().build_app()) as url:
        await wait_for_endpoint(ModelEndpoint("key", url + "/v1"), 1)


async def test_an_endpoint_that_comes_up_in_time_is_waited_for_and_said_at_once(caplog):
    (port,) = free_ports(1)
    waiting = asyncio.create_task(wait_for_endpoint(ModelEndpoint("key", f"http://127.0.0.1:{port}/v1"), 30))
    assert await until(lambda: bool(caplog.records), 60)
    said = caplog.records[0].getMessage()
    assert f"waiting for the model endpoint http://127.0.0.1:{port}/v1, for 30 s at most (++{TIMEOUT_KEY}=S)" in said
    async with in_process(probe().build_app(), port):
        await waiting


async def test_a_host_that_does_not_resolve_is_not_waited_for():
    async with asyncio.timeout(30):
        with pytest.raises(EndpointNotReadyError, match=r"http://nowhere\.invalid/v1 \(key\) does not answer"):
            await wait_for_endpoint(ModelEndpoint("key", "http://nowhere.invalid/v1"), 600)


async def test_a_limit_of_zero_skips_the_wait():
    await wait_for_model_endpoints(config(model_endpoint_readiness_timeout_seconds=0))


async def test_the_limit_ends_the_wait():
    with pytest.raises(EndpointNotReadyError, match=r"\+\+model_endpoint_readiness_timeout_seconds=0"):
        await wait_for_model_endpoints(config(model_endpoint_readiness_timeout_seconds=0.05))


async def test_an_endpoint_behind_a_socket_is_ready():
    async with behind_a_socket(probe().build_app()) as url:
        await wait_for_endpoint(ModelEndpoint("key", url), 5)

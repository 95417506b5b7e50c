import json

import pytest
from fastapi import FastAPI
from omegaconf import OmegaConf

from rollbook.config.types import BaseServerConfig
from rollbook.servers.client import ServerStatus
from rollbook.servers.http.http_client import request
from rollbook.servers.serving.head import head_app
from rollbook.servers.serving.status import instance_status, probe_status
from unit.servers_core.stand_ins import in_process

RECORD = {
    "config_path": "policy_model",
    "dir_path": "/repo/responses_api_models/openai_model",
    "entrypoint": "app.py",
    "host": "127.0.0.1",
    "name": "openai_model",
    "pid": 4242,
    "port": 14011,
    "process_name": "policy_model",
    "server_type": "responses_api_models",
    "start_time": 1750000000.5,
    "status": "unknown_error",
    "uptime_seconds": None,
    "url": "http://127.0.0.1:14011",
}
HEAD = BaseServerConfig(host="127.0.0.1", port=7)


def head(*, ready=True):
    config = OmegaConf.create({"api_key": "s3cret", "ref": "${api_key}"})
    return head_app(config, lambda: ready, lambda: (instance_status(RECORD),))


async def bodies(app, *paths):
    async with in_process(app) as url:
        replies = [await request("GET", url + path) for path in paths]
        return [(reply.status, await reply.read()) for reply in replies]


@pytest.mark.parametrize(("ready", "status", "word"), [(False, 503, "starting"), (True, 200, "ok")])
async def test_readiness_says_starting_until_every_server_is_up(ready, status, word):
    expected = (status, json.dumps({"status": word}, separators=(",", ":")).encode())
    assert await bodies(head(ready=ready), "/readyz", "/healthz", "/health") == [expected] * 3


async def test_the_head_server_is_alive_before_the_servers_are():
    assert await bodies(head(ready=False), "/", "/livez") == [(200, b'{"status":"ok"}')] * 2


async def test_the_configuration_is_a_json_string_of_resolved_unmasked_yaml():
    ((status, body),) = await bodies(head(), "/global_config_dict_yaml")
    text = json.loads(body)
    assert (status, text) == (200, "api_key: s3cret\nref: s3cret\n")


async def test_an_instance_record_has_the_fields_of_the_wire_and_goes_there_and_back():
    ((_, body),) = await bodies(head(), "/server_instances")
    assert json.loads(body) == [RECORD]
    assert list(json.loads(body)[0]) == list(RECORD)
    assert instance_status(RECORD).as_json() == RECORD


async def test_any_answer_of_a_server_is_a_success():
    instance = {**RECORD, "url": "http://127.0.0.1:8"}
    app = head_app(OmegaConf.create({}), lambda: True, lambda: (instance_status(instance),))
    async with in_process(app, 7), in_process(FastAPI(), 8):
        (found,) = await probe_status(HEAD)
    assert (found.status, found.healthy) == (ServerStatus.SUCCESS, True)
    assert found.uptime_seconds > 0


async def test_what_is_no_head_server_has_no_status():
    async with in_process(FastAPI(), 7):
        assert await probe_status(HEAD) is None


def without(key):
    return {name: value for name, value in RECORD.items() if name != key}


HOSTILE = [{"a": 1}, ["a"], [1], [[]], "a", None, 7, [{}], [without("url")], [{**RECORD, "port": None}], [RECORD, "a"]]


@pytest.mark.parametrize("records", HOSTILE)
async def test_instances_that_are_no_list_of_records_are_no_head_servers(records):
    app = FastAPI()
    app.get("/server_instances")(lambda: records)
    async with in_process(app, 7):
        assert await probe_status(HEAD) is None


@pytest.mark.parametrize("url", ["", "not a url", "ftp://x", "http://", "http://[", "http://a..b", "http://x:99999999"])
async def test_an_instance_whose_address_is_none_does_not_answer(url):
    app = head_app(OmegaConf.create({}), lambda: True, lambda: (instance_status({**RECORD, "url": url}),))
    async with in_process(app, 7):
        (found,) = await probe_status(HEAD)
    assert not found.healthy

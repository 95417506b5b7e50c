import asyncio
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from fastapi import FastAPI, Request
from omegaconf import OmegaConf
from pydantic import BaseModel

from ports import free_ports
from rollbook.errors import ServerRefNotFoundError
from rollbook.servers.client import (
    HeadServerUnreachableError,
    ServerClient,
    ServerStatus,
    get_server_url,
    resolve_model_base_url,
    setup_server_client,
)
from rollbook.servers.correlation import rollout_context
from rollbook.servers.head_lookup import fetch_global_config, parsed_head_reply, root_status
from rollbook.servers.http.embedded_registry import find_embedded
from unit.servers_core.stand_ins import HEAD, in_process, saying


class Partial(BaseModel):
    given: int
    left_out: int = 7


def paths() -> FastAPI:
    """Answer with the path, the body and the cookies that came in."""
    app = FastAPI()

    @app.api_route("/{path:path}", methods=["GET", "POST"])
    async def seen(request: Request, path: str) -> dict[str, object]:
        return {"path": "/" + path, "body": (await request.body()).decode(), "cookies": request.cookies}

    return app


def nobody() -> FastAPI:
    """Fail whoever calls."""
    return FastAPI()


def client(port, **top):
    block = {"entrypoint": "app.py", "host": "127.0.0.1", "port": port}
    kinds = {"rs": "resources_servers", "policy_model": "responses_api_models", "agent": "responses_api_agents"}
    blocks = {name: {kind: {"impl": block}} for name, kind in kinds.items()}
    return ServerClient(HEAD, OmegaConf.create({**blocks, **top}))


async def asked(server_client, server, path, **options):
    return await (await server_client.post(server_name=server, url_path=path, **options)).json()


async def test_a_model_goes_without_the_fields_that_nobody_set():
    async with in_process(paths()):
        seen = await asked(client(7), "rs", "/verify", json=Partial(given=1), cookies={"a": "b"})
    assert seen == {"path": "/verify", "body": '{"given":1}', "cookies": {"a": "b"}}


ROW = {"_ng_task_index": 3, "_ng_rollout_index": 1}
CORRELATED = [
    ("rs", "/seed_session", "9-9", {}, "/ng-rollout/9-9/seed_session"),
    ("rs", "/verify", None, ROW, "/ng-rollout/3-1/verify"),
    ("rs", "/verify", "9-9", ROW, "/ng-rollout/9-9/verify"),
    ("rs", "/look_up", None, ROW, "/look_up"),
    ("rs", "/ng-rollout/1-1/verify", "9-9", {}, "/ng-rollout/1-1/verify"),
    ("policy_model", "/v1/responses", "9-9", {}, "/ng-rollout/9-9/v1/responses"),
    ("policy_model", "/v1/chat/completions", "9-9", {}, "/ng-rollout/9-9/v1/chat/completions"),
    ("policy_model", "/v1/messages", "9-9", {}, "/ng-rollout/9-9/v1/messages"),
    ("policy_model", "/v1/models", "9-9", {}, "/v1/models"),
    ("policy_model", "/v1/responses", None, ROW, "/v1/responses"),
    ("agent", "/run", "9-9", ROW, "/run"),
]


@pytest.mark.parametrize(("server", "path", "rollout", "body", "expected"), CORRELATED)
async def test_calls_carry_the_rollout_where_the_deployment_observes(server, path, rollout, body, expected):
    async with in_process(paths()):
        with rollout_context(rollout):
            assert (await asked(client(7, observability_enabled=True), server, path, json=body))["path"] == expected
            assert (await asked(client(7), server, path, json=body))["path"] == path


async def test_calls_inside_a_training_capture_say_so():
    async with in_process(paths()):
        with rollout_context("1-0", training_capture=True):
            seen = await asked(client(7, observability_enabled=True), "policy_model", "/v1/responses", json={})
    assert seen["path"] == "/ng-rollout/1-0/training-token-capture/v1/responses"


async def test_the_environment_can_point_a_model_server_elsewhere(monkeypatch):
    monkeypatch.setenv("NEMO_GYM_MODEL_SERVER_NAME", "policy_model")
    monkeypatch.setenv("NEMO_GYM_MODEL_SERVER_BASE_URL", "http://127.0.0.1:7/ng-rollout/5-0/v1")
    async with in_process(paths()), in_process(nobody(), 8):
        observed = client(8, observability_enabled=True)
        with rollout_context("9-9"):
            seen = await asked(observed, "policy_model", "/v1/responses", json={})
        assert seen["path"] == "/ng-rollout/5-0/v1/responses"
        assert resolve_model_base_url(observed, "policy_model") == "http://127.0.0.1:7/ng-rollout/5-0/v1"


async def test_where_the_environment_points_a_model_server_is_read_at_each_call(monkeypatch):
    async with in_process(paths()):
        one = client(7)
        for prefix in ("", "/ng-rollout/a", "/ng-rollout/b", ""):
            monkeypatch.delenv("NEMO_GYM_MODEL_SERVER_NAME", raising=False)
            if prefix:
                monkeypatch.setenv("NEMO_GYM_MODEL_SERVER_NAME", "policy_model")
                monkeypatch.setenv("NEMO_GYM_MODEL_SERVER_BASE_URL", f"http://127.0.0.1:7{prefix}/v1")
            assert (await asked(one, "policy_model", "/v1/responses", json={}))["path"] == f"{prefix}/v1/responses"
            assert (await asked(one, "rs", "/verify", json={}))["path"] == "/verify"


async def test_the_environment_points_nothing_but_model_servers_elsewhere(monkeypatch):
    monkeypatch.setenv("NEMO_GYM_MODEL_SERVER_NAME", "rs")
    monkeypatch.setenv("NEMO_GYM_MODEL_SERVER_BASE_URL", "http://127.0.0.1:7/elsewhere/v1")
    async with in_process(paths()):
        assert (await asked(client(7), "rs", "/verify", json={}))["path"] == "/verify"


async def test_a_model_url_for_a_subprocess_names_the_rollout_and_opens_the_port():
    (port,) = free_ports(1)
    async with in_process(paths(), port) as url:
        plain, observed = client(port), client(port, observability_enabled=True)
        with rollout_context("4-0"):
            assert resolve_model_base_url(plain, "policy_model") == url + "/v1"
        assert resolve_model_base_url(plain, "policy_model", "3-0") == url + "/ng-rollout/3-0/v1"
        assert resolve_model_base_url(observed, "policy_model", "3-0") == url + "/ng-rollout/3-0/v1"
        with rollout_context("4-0"):
            assert resolve_model_base_url(observed, "policy_model") == url + "/ng-rollout/4-0/v1"
        assert find_embedded(url).is_open


async def test_a_call_by_name_opens_no_port_and_a_url_does():
    (port,) = free_ports(1)
    async with in_process(paths(), port) as url:
        by_name = client(port)
        assert by_name.poll_for_status("rs") is ServerStatus.SUCCESS
        assert not find_embedded(url).is_open
        assert get_server_url(by_name.global_config_dict, "rs") == url
        assert find_embedded(url).is_open


def test_a_server_that_is_not_there_has_a_connection_error():
    assert client(free_ports(1)[0]).poll_for_status("rs") is ServerStatus.CONNECTION_ERROR


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "success"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "success"),
        (b"no http at all", "unknown_error"),
    ],
)
def test_any_answer_of_http_is_that_of_a_server(answer, found):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(client(port).poll_for_status, "rs")
            accepted, _ = listener.accept()
            with accepted:
                accepted.recv(4096)
                accepted.sendall(answer)
        assert asked.result() == found


def test_a_server_that_says_nothing_runs_out_of_time():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert root_status(f"http://127.0.0.1:{listener.getsockname()[1]}", 0.3) == "timeout"


async def test_an_unknown_name_lists_the_close_ones():
    with pytest.raises(ServerRefNotFoundError, match=r"no server 'policy_modle'.*policy_model"):
        await client(1).post("policy_modle", "/v1/responses")


NO_HEAD = [b"<html>", b"[1]", b'"just words"', b'"a: ["', b'"{a: 1"', b'"a: ${b"', b'"a: {b: ${c}}"', b'"- a"', b"\xff"]


@pytest.mark.parametrize("body", [*NO_HEAD, b"[" * 100_000, b'"a: &a [*a]"', b'"!!python/object:os.system {}"'])
def test_what_is_no_head_server_is_said_to_be_none(body):
    with pytest.raises(HeadServerUnreachableError, match="what answers is no head server"):
        parsed_head_reply("http://x/global_config_dict_yaml", body)


@pytest.mark.parametrize(
    "payload",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        b'HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n"a: ["',
    ],
)
async def test_another_program_on_the_heads_port_is_said_to_be_no_head_server(payload):
    async with saying(payload) as head:
        with pytest.raises(
            HeadServerUnreachableError, match=rf"no head server answers at http://127.0.0.1:{head.port}/"
        ):
            await asyncio.to_thread(fetch_global_config, head)


def test_a_process_that_was_given_a_configuration_asks_no_head_server(monkeypatch):
    text = "head_server: {host: 127.0.0.1, port: 1}\nrs: {resources_servers: {impl: {host: h, port: 2}}}\n"
    monkeypatch.setenv("NEMO_GYM_CONFIG_DICT", text)
    for found in (ServerClient.load_from_global_config(), setup_server_client()):
        assert get_server_url(found.global_config_dict, "rs") == "http://h:2"
        assert found.head_server_config.port == 1


def test_no_head_server_is_a_value_error_that_names_its_url(monkeypatch):
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    head = HEAD.model_copy(update={"port": free_ports(1)[0]})
    with pytest.raises(ValueError, match=rf"no head server answers at http://127\.0\.0\.1:{head.port}/global_config"):
        ServerClient.load_from_global_config(head)


def test_the_names_that_stand_ins_replace_exist_on_the_class():
    names = "load_head_server_config load_from_global_config post get request _build_server_base_url poll_for_status"
    assert all(hasattr(ServerClient, name) for name in names.split())


def test_a_subclass_has_fields_of_its_own_given_by_name_or_by_default():
    class Recording(ServerClient):
        asked: list[str] = []  # noqa: RUF012  as a model declares a default
        colour: str

    one = Recording(HEAD, OmegaConf.create({}), colour="teal")
    other = Recording(head_server_config=HEAD, global_config_dict=OmegaConf.create({}), asked=["/run"])
    one.asked.append("/verify")
    assert (one.colour, one.asked, other.asked, Recording.asked) == ("teal", ["/verify"], ["/run"], [])


def test_a_client_can_be_made_of_the_fields_that_a_test_uses():
    blocks = {"sandbox": {"local": {}}}
    assert ServerClient.model_construct(global_config_dict=blocks).global_config_dict is blocks
    assert ServerClient.model_construct().head_server_config is None

import io
import os
import resource
import threading

import pytest
import uvicorn
from fastapi import FastAPI
from omegaconf import OmegaConf
from pydantic import PrivateAttr

from rollbook.config.types import BaseRunServerInstanceConfig
from rollbook.errors import ConfigError
from rollbook.servers.http.client_pool import choose_client_settings, current_client_settings
from rollbook.servers.serving.open_files import raise_open_file_limit
from rollbook.servers.serving.processes import ProcessDeployment
from rollbook.servers.serving.webserver import (
    LAUNCHER_PIPE_ENV_VAR_NAME,
    PrefixedLines,
    follow_launcher,
    forwarded_allow_ips,
    head_server_config,
    instance_config,
    is_nemo_gym_fastapi_entrypoint,
    run_until_stopped,
    serve_here,
)
from unit.servers_core.stand_ins import Probe, configuration, write_component


class PickyConfig(BaseRunServerInstanceConfig):
    limit: int


class Picky(Probe):
    config: PickyConfig
    _built: list[str] = PrivateAttr(default_factory=list)


def one(given, **top):
    return configuration({"picky": given}, **top)


def test_a_block_is_read_as_the_classs_own_configuration_with_its_name():
    config = instance_config(Picky, one({"limit": "${top}"}, top=3), "picky")
    assert (type(config), config.limit, config.name, config.entrypoint) == (PickyConfig, 3, "picky", "app.py")


def test_a_field_of_the_wrong_type_names_instance_and_field():
    with pytest.raises(ConfigError, match=r"'picky' does not validate(?s:.*)limit"):
        instance_config(Picky, one({"limit": "many"}), "picky")


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ("many", "picky.resources_servers.picky.limit"),
        ("${top}", "top"),
        ("${.deep}", "picky.resources_servers.picky.limit"),
    ],
)
def test_a_field_of_the_wrong_type_names_the_key_that_sets_it(given, key):
    with pytest.raises(ConfigError, match=rf"limit: .* set \+\+{key}=<value>$"):
        instance_config(Picky, one({"limit": given, "deep": "few"}, top="many"), "picky")


def test_a_misspelt_key_is_named_with_the_one_that_is_close(caplog):
    instance_config(Picky, one({"limit": 1, "limt": 2}), "picky")
    assert "server 'picky' ignores the key 'limt'" in caplog.text
    assert "did you mean 'limit'?" in caplog.text


def test_what_a_block_tells_its_reader_is_no_misspelt_key(caplog):
    told = {"description": "Picks.", "value": "Pickier models", "verified": False, "verified_url": "https://a.example"}
    instance_config(Picky, one({"limit": 1} | told), "picky")
    assert caplog.text == ""


def test_the_head_server_listens_on_11000_of_loopback_unless_told_otherwise():
    assert head_server_config(OmegaConf.create({})).model_dump() == {
        "host": "127.0.0.1",
        "port": 11_000,
        "num_workers": None,
    }
    assert head_server_config(OmegaConf.create({"head_server": {"port": 5}})).port == 5


EVERYBODY = ["*", "0.0.0.0/0", "::/0", "example.com", ["10.0.0.1", "*"], "0.0.0.0/1, 128.0.0.0/1", "8000::/1,::/1"]


@pytest.mark.parametrize("entry", [*EVERYBODY, "0.0.0.0/2,64.0.0.0/2,128.0.0.0/1,::1", "::ffff:0:0/96", "::/64"])
def test_forwarding_is_believed_from_listed_addresses_alone(entry):
    with pytest.raises(ConfigError, match="uvicorn_forwarded_allow_ips holds"):
        forwarded_allow_ips({"uvicorn_proxy_headers": True, "uvicorn_forwarded_allow_ips": entry})


def test_forwarding_is_believed_from_nobody_unless_it_is_switched_on():
    given = {"uvicorn_forwarded_allow_ips": "10.0.0.0/8, 10.1.1.1"}
    assert forwarded_allow_ips(given) is None
    assert forwarded_allow_ips({**given, "uvicorn_proxy_headers": True}) == ["10.0.0.0/8", "10.1.1.1"]


def test_forwarding_that_is_switched_on_without_addresses_is_believed_from_nobody(monkeypatch, caplog):
    served = {}
    monkeypatch.setattr(uvicorn, "run", lambda _, **options: served.update(options))
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    run_until_stopped(FastAPI(), one({"limit": 1}, uvicorn_proxy_headers=True), "picky")
    assert (served["proxy_headers"], served["forwarded_allow_ips"]) == (False, None)
    assert "uvicorn_forwarded_allow_ips" in caplog.text
    run_until_stopped(
        FastAPI(), one({"limit": 1}, uvicorn_proxy_headers=True, uvicorn_forwarded_allow_ips="10.1.1.1"), "picky"
    )
    assert (served["proxy_headers"], served["forwarded_allow_ips"]) == (True, ["10.1.1.1"])


def test_lines_are_prefixed_once_each_however_they_are_written():
    stream = io.StringIO()
    prefixed = PrefixedLines(stream, "(x) ")
    for text in ("a", "b\nc", "\n", "d\n"):
        prefixed.write(text)
    prefixed.flush()
    assert stream.getvalue() == "(x) ab\n(x) c\n(x) d\n"


def test_the_open_file_limit_is_raised_as_far_as_the_system_allows():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(256, hard), hard))
    try:
        raise_open_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == min(65_535, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_process_learns_of_its_launchers_end(monkeypatch):
    reading, writing = os.pipe()
    ended = threading.Event()
    monkeypatch.setenv(LAUNCHER_PIPE_ENV_VAR_NAME, str(reading))
    follow_launcher(ended.set)
    assert not ended.wait(0.02)
    os.close(writing)
    assert ended.wait(5)
    os.close(reading)
    assert LAUNCHER_PIPE_ENV_VAR_NAME not in os.environ


def test_a_server_that_is_started_by_hand_says_how_servers_are_started(monkeypatch):
    monkeypatch.delenv("NEMO_GYM_CONFIG_PATH", raising=False)
    with pytest.raises(ConfigError, match=r"NEMO_GYM_CONFIG_PATH is not set.*gym env start"):
        Probe.run_webserver()


def test_a_configuration_that_does_not_validate_shows_no_value():
    with pytest.raises(ConfigError) as caught:
        instance_config(Picky, one({"limit": "sk-secret"}), "picky")
    assert "sk-secret" not in str(caught.value)


async def test_a_servers_process_uses_the_clients_knobs(monkeypatch):
    monkeypatch.setenv("NEMO_GYM_CONFIG_PATH", "picky")
    config = one({"limit": 1}, dry_run=True, global_aiohttp_connect_timeout_seconds=3)
    monkeypatch.setenv("NEMO_GYM_CONFIG_DICT", OmegaConf.to_yaml(config))
    serve_here(Picky)
    assert current_client_settings().connect_seconds == 3
    choose_client_settings({})


def test_a_dry_run_builds_the_server_and_serves_nothing(monkeypatch):
    monkeypatch.setenv("NEMO_GYM_CONFIG_PATH", "picky")
    monkeypatch.setenv("NEMO_GYM_CONFIG_DICT", OmegaConf.to_yaml(one({"limit": 1}, dry_run=True)))
    assert serve_here(Picky) is None


def test_a_worker_is_told_apart_by_its_entry_point(monkeypatch, tmp_path):
    assert not is_nemo_gym_fastapi_entrypoint(str(tmp_path / "app.py"))
    monkeypatch.setenv("IS_NEMO_GYM_FASTAPI_WORKER", "1")
    monkeypatch.setenv("IS_NEMO_GYM_FASTAPI_ENTRYPOINT", str(tmp_path / "app.py"))
    assert is_nemo_gym_fastapi_entrypoint(str(tmp_path / "app.py"))
    assert not is_nemo_gym_fastapi_entrypoint(str(tmp_path / "other.py"))


WORKERS = """
    import os

    from fastapi import FastAPI
    from rollbook.servers.base import SimpleServer, is_nemo_gym_fastapi_entrypoint


    class Several(SimpleServer):
        def setup_webserver(self) -> FastAPI:
            app = FastAPI()
            app.post("/run")(self.run)
            return app

        async def run(self) -> list[int]:
            return [os.getpid(), os.getppid()]


    if __name__ == "__main__":
        Several.run_webserver()
    elif is_nemo_gym_fastapi_entrypoint(__file__):
        app = Several.run_webserver()
"""


async def test_a_server_with_several_workers_answers_from_one_of_them(root, tmp_path):
    write_component(root, "several", WORKERS)
    async with ProcessDeployment(configuration({"several": {"num_workers": 2}}), tmp_path) as deployment:
        reply = await deployment.send("several", "/run", b"{}")
        assert reply.body.endswith(f",{deployment.processes[0].pid}]".encode())

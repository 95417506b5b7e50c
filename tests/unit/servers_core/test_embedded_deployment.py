import asyncio
import gc
import socket
import sys
import threading
from contextlib import suppress

import orjson
import pytest
from omegaconf import OmegaConf

from rollbook.config.parser import get_global_config_dict
from rollbook.errors import ConfigError, EndpointNotReadyError, NoServerInstancesError, PortTakenError, ServingError
from rollbook.records.exchange import Exchange, SendFailed
from rollbook.servers.client import ServerClient, get_server_url
from rollbook.servers.http.embedded_registry import find_embedded
from rollbook.servers.serving.embedded import EmbeddedDeployment
from rollbook.servers.serving.lifespan import Lifespan
from rollbook.testing.manual_clock import ManualClock
from unit.servers_core.stand_ins import APP, configuration, write_component

RECORDER = """
    from contextlib import asynccontextmanager

    from fastapi import FastAPI
    from rollbook.config.parser import get_global_config_dict
    from rollbook.servers.base import SimpleServer

    SEEN = []


    class Recorder(SimpleServer):
        def setup_webserver(self) -> FastAPI:
            @asynccontextmanager
            async def lifespan(app):
                SEEN.append(f"start {self.config.name}")
                if get_global_config_dict().get("refuse") == self.config.name:
                    raise ValueError("the lamp is broken")
                yield {"lamp": self.config.name}
                SEEN.append(f"stop {self.config.name}")

            app = FastAPI(lifespan=lifespan)
            app.post("/run")(self.run)
            app.post("/thread")(self.thread)
            app.post("/lamp")(self.lamp)
            return app

        async def run(self) -> list[str]:
            reply = await self.server_client.post("second", "/lamp")
            return [self.config.name, await reply.json()]

        def thread(self) -> str:
            import threading
            return threading.current_thread().name

        async def lamp(self, request: "Request") -> str:
            return request.state.lamp


    from fastapi import Request

    if __name__ == "__main__":
        Recorder.run_webserver()
"""


def recorders(root, **top):
    write_component(root, "recorder", RECORDER)
    return configuration({"first": {"implementation": "recorder"}, "second": {"implementation": "recorder"}}, **top)


def seen():
    notes = sys.modules["resources_servers.recorder.app"].SEEN
    copied = list(notes)
    notes.clear()
    return copied


async def test_servers_start_in_order_talk_without_sockets_and_stop_in_reverse(root):
    deployment = EmbeddedDeployment(recorders(root))
    async with deployment:
        reply = await deployment.send("first", "/run", b"{}")
        assert (reply.status, orjson.loads(reply.body)) == (200, ["first", "second"])
        assert reply.headers["content-type"] == "application/json"
        for block in (deployment.global_config_dict.first, deployment.global_config_dict.second):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", block.resources_servers.recorder.port), timeout=1)
        assert get_global_config_dict() == deployment.global_config_dict
    assert seen() == ["start first", "start second", "stop second", "stop first"]
    assert find_embedded(get_server_url(deployment.global_config_dict, "first")) is None


async def test_code_inside_an_embedded_server_finds_its_deployment_without_a_head_server(root):
    async with EmbeddedDeployment(recorders(root)) as deployment:
        client = ServerClient.load_from_global_config()
        assert client.head_server_config == deployment.head_server_config
        assert await (await client.post("second", "/lamp")).json() == "second"
    seen()


async def test_what_was_loaded_is_out_of_the_collectors_way_while_servers_run(root):
    async with EmbeddedDeployment(recorders(root)):
        assert gc.get_freeze_count() > 0
    assert gc.get_freeze_count() == 0
    seen()


@pytest.mark.parametrize(
    ("behind", "seconds", "top", "answered_by"),
    [
        ("second", None, {}, "second"),
        ("second", None, {"global_aiohttp_total_timeout_seconds": 0}, "second"),
        ("second", None, {"global_aiohttp_total_timeout_seconds": 60}, "first"),
        ("second", None, {"global_aiohttp_read_timeout_seconds": 60}, "first"),
        ("second", 60.0, {}, "first"),
        ("gone", None, {}, "first"),
    ],
)
async def test_a_request_goes_past_a_relay_unless_its_time_is_watched_or_nobody_is_behind(
    root, behind, seconds, top, answered_by
):
    relaying = f"""
        def relayed_paths(self):
            return {{"/lamp": {behind!r}}} if self.config.name == "first" else {{}}

        def thread(self)"""
    write_component(root, "recorder", RECORDER.replace("\n        def thread(self)", relaying))
    instances = {"first": {"implementation": "recorder"}, "second": {"implementation": "recorder"}}
    async with EmbeddedDeployment(configuration(instances, **top)) as deployment:
        reply = await deployment.send("first", "/lamp", b"{}", Exchange(ManualClock().monotonic, seconds))
        assert orjson.loads(reply.body) == answered_by
        reply = await deployment.send("first", "/run", b"{}")
        assert orjson.loads(reply.body) == ["first", "second"]
    seen()


async def test_a_blocking_handler_runs_in_a_thread(root):
    async with EmbeddedDeployment(recorders(root)) as deployment:
        name = orjson.loads((await deployment.send("first", "/thread", b"")).body)
    assert name != threading.main_thread().name
    seen()


async def test_a_url_that_is_handed_out_can_be_reached_from_outside(root):
    async with EmbeddedDeployment(recorders(root)) as deployment:
        url = get_server_url(deployment.global_config_dict, "first")
        assert (
            ServerClient(deployment.head_server_config, deployment.global_config_dict)._build_server_base_url(
                deployment.global_config_dict.first.resources_servers.recorder
            )
            == url
        )
        host, port = url.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"POST /lamp HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
        assert (await reader.read()).endswith(b'"first"')
        writer.close()
    seen()


async def test_a_server_that_cannot_start_stops_those_that_did(root):
    with pytest.raises(ServingError, match=r"server 'second' did not start: ValueError: the lamp is broken"):
        await EmbeddedDeployment(recorders(root, refuse="second")).start()
    assert seen() == ["start first", "start second", "stop first"]


SLOW = """
    import asyncio
    from contextlib import asynccontextmanager

    from fastapi import FastAPI
    from rollbook.config.parser import get_global_config_dict
    from rollbook.servers.base import SimpleServer

    SEEN = []


    class Slow(SimpleServer):
        def setup_webserver(self) -> FastAPI:
            @asynccontextmanager
            async def lifespan(app):
                where = get_global_config_dict().get("where")
                SEEN.append(f"start {self.config.name}")
                try:
                    if where == f"start {self.config.name}":
                        await asyncio.get_running_loop().create_future()
                    yield
                    if where == f"stop {self.config.name}":
                        await asyncio.get_running_loop().create_future()
                finally:
                    SEEN.append(f"release {self.config.name}")

            return FastAPI(lifespan=lifespan)


    if __name__ == "__main__":
        Slow.run_webserver()
"""


def slow_ones(root, **top):
    write_component(root, "slow", SLOW)
    return EmbeddedDeployment(
        configuration({"first": {"implementation": "slow"}, "second": {"implementation": "slow"}}, **top)
    )


def seen_of_slow():
    return sys.modules["resources_servers.slow.app"].SEEN


def tasks():
    return asyncio.all_tasks() - {asyncio.current_task()}


async def test_a_server_that_does_not_start_in_time_is_given_up_with_the_key_that_allows_more(root):
    before = tasks()
    hint = r"'second' did not start: it took longer than 0\.5 s.*\+\+server_spinup_timeout_seconds=<seconds>"
    with pytest.raises(ServingError, match=hint):
        await slow_ones(root, where="start second", server_spinup_timeout_seconds=0.5).start()
    assert seen_of_slow() == ["start first", "start second", "release second", "release first"]
    assert tasks() == before


async def test_an_interrupted_start_releases_what_was_starting(root):
    before = tasks()
    starting = asyncio.create_task(slow_ones(root, where="start second").start())
    for _ in range(100):
        await asyncio.sleep(0)
    assert seen_of_slow() == ["start first", "start second"]
    starting.cancel()
    await asyncio.wait({starting}, timeout=60)
    assert starting.cancelled()
    assert seen_of_slow() == ["start first", "start second", "release second", "release first"]
    assert tasks() == before


async def test_a_server_that_does_not_end_is_cancelled_and_said(root, caplog, monkeypatch):
    monkeypatch.setattr(Lifespan.__init__, "__kwdefaults__", {**Lifespan.__init__.__kwdefaults__, "to_end": 0.5})
    before = tasks()
    deployment = slow_ones(root, where="stop second")
    async with asyncio.timeout(60):
        await deployment.start()
        await deployment.close()
    assert seen_of_slow()[2:] == ["release second", "release first"]
    assert "'second' did not end well: it was still ending after 0.5 s" in caplog.text
    assert tasks() == before


async def test_an_application_that_ignores_its_cancellation_is_left_behind():
    async def stubborn(scope, receive, send):
        await receive()
        await send({"type": "lifespan.startup.complete"})
        for _ in range(2):
            with suppress(asyncio.CancelledError):
                await asyncio.get_running_loop().create_future()

    lifespan = Lifespan(stubborn, "stubborn", to_end=0.02)
    async with asyncio.timeout(60):
        await lifespan.startup()
        await lifespan.shutdown()
    (left,) = tasks()
    left.cancel()
    await asyncio.wait({left})


async def test_a_block_that_does_not_validate_names_instance_and_field(root):
    write_component(root, "picky", APP)
    with pytest.raises(ConfigError, match=r"'picky' does not validate.*(?s:.)*favourite"):
        await EmbeddedDeployment(configuration({"picky": {"favourite": [1]}})).start()


async def test_a_server_that_cannot_be_built_is_named(root):
    write_component(root, "clumsy", APP.replace("app = FastAPI()", "app = FastAPI() / 0"))
    with pytest.raises(ServingError, match=r"'clumsy' cannot be built \(.*clumsy/app\.py:\d+\): TypeError"):
        await EmbeddedDeployment(configuration({"clumsy": {}})).start()


async def test_a_configuration_without_servers_is_an_error():
    with pytest.raises(NoServerInstancesError):
        await EmbeddedDeployment(OmegaConf.create({"x": 1})).start()


async def test_two_instances_on_one_port_are_an_error_that_names_both(root):
    config = recorders(root)
    config.second.resources_servers.recorder.port = config.first.resources_servers.recorder.port
    with pytest.raises(PortTakenError, match="'second' and 'first'"):
        await EmbeddedDeployment(config).start()
    assert seen()[-2:] == ["stop second", "stop first"]


def base_url(deployment, name):
    return f"http://127.0.0.1:{deployment.global_config_dict[name].resources_servers[name].port}"


async def test_a_cancelled_send_cancels_the_handler(root):
    waiting = APP.replace('return {"colour"', 'await WAITING.wait()\n            return {"colour"').replace(
        "class ColoursConfig", "import asyncio\n    WAITING = asyncio.Event()\n\n    class ColoursConfig"
    )
    write_component(root, "patient", waiting)
    async with EmbeddedDeployment(configuration({"patient": {}})) as deployment:
        call = asyncio.create_task(deployment.send("patient", "/run", b"{}"))
        server = find_embedded(base_url(deployment, "patient"))
        for _ in range(100):
            await asyncio.sleep(0)
        handlers = set(server.running)
        call.cancel()
        await asyncio.wait({call, *handlers}, timeout=60)
        assert call.cancelled()
        assert not server.running


async def test_an_unknown_server_fails_without_being_sent(root):
    async with EmbeddedDeployment(recorders(root)) as deployment:
        with pytest.raises(SendFailed, match="no server 'third'"):
            await deployment.send("third", "/run", b"{}")
    seen()


async def test_a_model_endpoint_that_is_not_there_ends_the_start(root):
    config = recorders(root, model_endpoint_readiness_timeout_seconds=0.1)
    write_component(root, "model", APP)
    (root / "resources_servers" / "model").rename(root / "model_folder")
    (root / "responses_api_models").mkdir()
    (root / "model_folder").rename(root / "responses_api_models" / "model")
    block = {"entrypoint": "app.py", "host": "127.0.0.1", "port": 2, "openai_base_url": "http://127.0.0.1:1/v1"}
    config.policy_model = {"responses_api_models": {"model": block}}
    key = r"policy_model\.responses_api_models\.model\.openai_base_url"
    with pytest.raises(EndpointNotReadyError, match=rf"http://127\.0\.0\.1:1/v1 \({key}\) .*\+\+{key}=<url>"):
        await EmbeddedDeployment(config).start()
    assert seen() == ["start first", "start second", "stop second", "stop first"]

"""`gym env start`, `status` and `stop`, on one small server."""

import json
import os
import signal
import subprocess
import sys

import pytest

APP = """
from rollbook import BaseResourcesServerConfig, BaseVerifyRequest, BaseVerifyResponse, SimpleResourcesServer


class Always(SimpleResourcesServer):
    config: BaseResourcesServerConfig

    async def verify(self, body: BaseVerifyRequest) -> BaseVerifyResponse:
        return BaseVerifyResponse(**body.model_dump(), reward=1.0)


if __name__ == "__main__":
    Always.run_webserver()
"""
GYM = [sys.executable, "-m", "rollbook.cli"]


def gym(here, *arguments):
    return subprocess.run([*GYM, *arguments], cwd=here, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def here(tmp_path, monkeypatch, unused_tcp_port):
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    folder = tmp_path / "resources_servers" / "always"
    folder.mkdir(parents=True)
    (folder / "app.py").write_text(APP)
    (tmp_path / "env.yaml").write_text(f"head_server: {{host: 127.0.0.1, port: {unused_tcp_port}}}\n")
    (tmp_path / "always.yaml").write_text(
        "always:\n  resources_servers:\n    always: {entrypoint: app.py, domain: other}\n"
    )
    return tmp_path


@pytest.fixture
def started(here):
    command = [*GYM, "env", "start", "--config", "always.yaml", "--log-dir", "logs"]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=here, stdout=pipe, stderr=pipe, text=True, env=dict(os.environ)) as process:
        lines = [process.stdout.readline(), process.stdout.readline()]
        try:
            yield process, lines
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
                process.communicate(timeout=60)


def test_a_deployment_is_seen_and_stopped_from_elsewhere(here, started):
    process, lines = started
    assert lines[0].startswith("always  http://127.0.0.1:")
    assert lines[1].startswith("head  http://127.0.0.1:")
    (server,) = json.loads(gym(here, "env", "status", "--json").stdout)
    assert (server["process_name"], server["status"]) == ("always", "success")
    assert "1 servers found (1 healthy, 0 unhealthy)" in gym(here, "env", "status").stdout
    stopped = json.loads(gym(here, "env", "stop", "--json").stdout)
    assert (stopped["stopped"], stopped["killed"]) == (["always"], [])
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert (here / "logs" / "always.log").is_file()
    assert gym(here, "env", "stop").stdout.startswith("Nothing to stop")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_deployment_in_order(number, here, started):
    process, _ = started
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert "All servers are stopped." in said
    assert "Traceback" not in said


def test_a_configuration_without_servers_starts_nothing(here):
    done = gym(here, "env", "start")
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "--config" in done.stderr

import asyncio
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from textwrap import dedent

import orjson
import pytest

from ports import free_ports
from rollbook.config.types import BaseServerConfig
from rollbook.errors import MissingPackageError, PortTakenError, ServerDiedError, ServingError
from rollbook.records.exchange import SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.servers.client import HeadServerUnreachableError, ServerClient, ServerStatus
from rollbook.servers.http.http_client import request
from rollbook.servers.http.waiting import until
from rollbook.servers.serving.environment import start_environment, stop_environment
from rollbook.servers.serving.processes import ProcessDeployment
from rollbook.servers.serving.remote import RemoteDeployment
from rollbook.servers.serving.state_file import (
    KnownProcess,
    known_process,
    read_state,
    start_mark,
    state_path,
    write_state,
)
from rollbook.servers.serving.status import probe_status
from unit.servers_core.stand_ins import APP, configuration, write_component

SHADES = {"implementation": "colours", "favourite": "grey"}
DIES = "import sys\nprint('the lamp is broken', flush=True)\nsys.exit(3)\n"


def command_line(pid):
    ps = shutil.which("ps")
    return subprocess.run([ps, "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=True).stdout


@pytest.fixture
def closed_proxy(monkeypatch):
    """Name a proxy that nobody listens at; a call that obeys it fails."""
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")


def running(pids):
    return [pid for pid in pids if start_mark(pid) is not None]


async def gone(pids):
    return await until(lambda: not running(pids), 60)


async def test_processes_serve_are_watched_and_leave_nothing_behind(root, tmp_path, closed_proxy):
    write_component(root, "colours")
    secret = "not-for-the-process-list"
    config = configuration(
        {"colours": {}, "shades": {"implementation": "colours", "favourite": "grey"}}, api_key=secret
    )
    deployment = ProcessDeployment(config, tmp_path / "logs")
    async with deployment:
        pids = [process.pid for process in deployment.processes]
        replies = [await deployment.send(name, "/run", b"{}") for name in ("colours", "shades")]
        assert [orjson.loads(reply.body)["colour"] for reply in replies] == ["teal", "grey"]
        assert not any(secret in command_line(pid) for pid in pids)
        assert "(shades) asked\n" in deployment.log_files["shades"].read_text()

        head = deployment.head_server_config
        statuses = await probe_status(head)
        assert [(one.process_name, one.status, one.pid) for one in statuses] == [
            ("colours", ServerStatus.SUCCESS, pids[0]),
            ("shades", ServerStatus.SUCCESS, pids[1]),
        ]
        url = f"http://127.0.0.1:{head.port}"
        assert (await request("GET", url + "/readyz")).status == 200
        assert isinstance(json.loads(await (await request("GET", url + "/global_config_dict_yaml")).read()), str)

        async with RemoteDeployment(head) as remote:
            assert remote.global_config_dict == config
            assert (await remote.send("colours", "/run", b"{}")).status == 200
            client = await asyncio.to_thread(ServerClient.load_from_global_config, head)
            assert client.poll_for_status("shades") is ServerStatus.SUCCESS

        watch = asyncio.create_task(deployment.watch())
        os.kill(pids[1], signal.SIGKILL)
        with pytest.raises(ServerDiedError, match=r"'shades' ended on its own with signal SIGKILL"):
            await watch
        async with asyncio.timeout(60):
            with pytest.raises(SendFailed) as caught:
                await deployment.send("shades", "/run", b"{}")
        assert caught.value.delivery is Delivery.NOT_SENT
        assert (await probe_status(head))[1].status is ServerStatus.CONNECTION_ERROR
    assert await gone(pids)
    assert await probe_status(head) is None
    with pytest.raises(HeadServerUnreachableError, match=rf"http://127\.0\.0\.1:{head.port}/.*gym env start"):
        await RemoteDeployment(head).start()


async def test_a_server_that_dies_at_start_is_reported_with_its_exit_code_and_the_end_of_its_log(root, tmp_path):
    write_component(root, "colours")
    write_component(root, "lamp", DIES)
    config = configuration({"colours": {}, "lamp": {}})
    deployment = ProcessDeployment(config, tmp_path)
    with pytest.raises(ServerDiedError, match=r"'lamp' ended while .* exit code 3(?s:.*)the lamp is broken"):
        await deployment.start()
    assert deployment.processes == ()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", config.colours.resources_servers.colours.port), timeout=1)


async def test_a_server_that_died_while_others_worked_is_told_at_the_end_unless_it_was_before(root, tmp_path):
    dying = APP.replace('print("asked")', "__import__('os')._exit(7 if self.config.favourite == 'teal' else 9)")
    write_component(root, "fainting", dying)
    config = configuration({"fainting": {}, "leaving": {"implementation": "fainting", "favourite": "grey"}})
    told = []
    async with ProcessDeployment(config, tmp_path / "logs", tell=told.append) as deployment:
        for name in ("leaving", "fainting"):
            with pytest.raises(SendFailed):
                await deployment.send(name, "/run", b"{}")
            if name == "leaving":
                with pytest.raises(ServerDiedError, match=r"'leaving' ended on its own with exit code 9"):
                    await deployment.watch()
        assert await until(lambda: all(process.exit_code is not None for process in deployment.processes), 10)
        assert told == []
    (text,) = told
    assert text.startswith(
        f"server 'fainting' ended on its own with exit code 7; the end of {tmp_path}/logs/fainting.log"
    )


async def test_a_server_that_lacks_a_package_is_reported_with_the_line_that_installs_it(root, tmp_path):
    folder = write_component(root, "needy_child", "import surely_missing.sub\n")
    (folder / "requirements.txt").write_text("surely-missing>=2\n")
    with pytest.raises(MissingPackageError, match=r"/needy_child asks for .*pip install 'surely-missing>=2'"):
        await ProcessDeployment(configuration({"needy_child": {}}), tmp_path).start()


async def test_a_server_may_name_its_missing_package_itself(root, tmp_path):
    own = "from rollbook.errors import MissingPackageError\nraise MissingPackageError('wordy: pip install it')\n"
    write_component(root, "wordy_child", own)
    with pytest.raises(MissingPackageError, match=r"^wordy: pip install it$"):
        await ProcessDeployment(configuration({"wordy_child": {}}), tmp_path).start()


async def test_a_server_that_imports_a_name_that_is_left_out_is_reported_with_file_and_line(root, tmp_path):
    pytest.importorskip("nemo_gym")
    write_component(root, "wondering", "\nimport nemo_gym.wonders\n")
    with pytest.raises(ServingError, match=r"wondering/app\.py:2 imports nemo_gym\.wonders: it is not among the names"):
        await ProcessDeployment(configuration({"wondering": {}}), tmp_path).start()


async def test_a_taken_port_is_known_before_anything_starts(root, tmp_path):
    write_component(root, "colours")
    config = configuration({"colours": {}})
    port = config.colours.resources_servers.colours.port
    key = rf"port {port} .*\+\+colours\.resources_servers\.colours\.port=<port>"
    with socket.create_server(("127.0.0.1", port)), pytest.raises(PortTakenError, match=key):
        await ProcessDeployment(config, tmp_path / "logs").start()
    assert not (tmp_path / "logs").exists()


async def test_a_taken_head_port_names_its_key(root, tmp_path):
    write_component(root, "colours")
    config = configuration({"colours": {}})
    found = r"the head server.*\+\+head_server\.port=<port>"
    with socket.create_server(("127.0.0.1", config.head_server.port)), pytest.raises(PortTakenError, match=found):
        await ProcessDeployment(config, tmp_path / "logs").start()


async def test_a_server_that_never_answers_is_given_up_and_stopped(root, tmp_path):
    write_component(root, "silent", "import threading\nthreading.Event().wait()\n")
    config = configuration({"silent": {}}, server_spinup_timeout_seconds=0.3)
    with pytest.raises(ServingError, match=r"'silent' did not answer at http.* within 0.3 s; see .*silent\.log"):
        await ProcessDeployment(config, tmp_path).start()


async def test_an_interrupted_wait_for_the_endpoints_leaves_no_task_behind(root, tmp_path):
    deployment = ProcessDeployment(configuration({"colours": {}}), tmp_path)
    before = asyncio.all_tasks()

    async def forever():
        await asyncio.get_running_loop().create_future()

    waiting = asyncio.create_task(deployment._or_death(forever()))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait({waiting})
    assert waiting.cancelled()
    assert asyncio.all_tasks() == before


async def test_what_a_server_started_ends_with_it(root, tmp_path):
    start = """import subprocess
            child = subprocess.Popen(["sh", "-c", "trap '' INT; sleep 600"])
            open("child.pid", "w").write(str(child.pid))
            app = FastAPI()"""
    starts_a_child = APP.replace("app = FastAPI()", start)
    folder = write_component(root, "parent", starts_a_child)
    async with ProcessDeployment(configuration({"parent": {}}), tmp_path):
        child = int((folder / "child.pid").read_text())
        assert running([child])
    assert await gone([child])


LAUNCHER = """
    import asyncio, sys
    from pathlib import Path
    from omegaconf import OmegaConf
    from rollbook.servers.serving.environment import start_environment


    async def main():
        running = await start_environment(OmegaConf.load(sys.argv[1]), Path(sys.argv[2]), state_dir=Path(sys.argv[2]))
        print(*[process.pid for process in running.deployment.processes], flush=True)
        try:
            await running.wait_until_ended()
        finally:
            await running.close()


    asyncio.run(main())
"""


@pytest.fixture
def launched(root, tmp_path):
    """Start an environment from another process; yield (configuration, launcher, the servers' ids, state folder)."""
    from omegaconf import OmegaConf  # noqa: PLC0415  written for the launcher alone

    write_component(root, "colours")
    config = configuration({"colours": {}})
    OmegaConf.save(config, tmp_path / "config.yaml")
    (tmp_path / "launcher.py").write_text(dedent(LAUNCHER))
    command = [sys.executable, "launcher.py", "config.yaml", str(tmp_path / "state")]
    quiet = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=tmp_path, text=True, **quiet) as launcher:
        pids = [int(text) for text in launcher.stdout.readline().split()]
        yield config, launcher, pids, tmp_path / "state"
        launcher.kill()


async def test_an_environment_is_stopped_from_elsewhere(launched):
    config, launcher, pids, folder = launched
    head = BaseServerConfig.model_validate(dict(config.head_server))
    mode = stat.S_IMODE(state_path(head, folder).stat().st_mode)
    assert (len(pids), mode) == (1, 0o600)
    report = await stop_environment(head, state_dir=folder)
    assert (report.pid, report.stopped, report.killed) == (launcher.pid, ("colours",), ())
    assert await gone([*pids, launcher.pid])
    assert await stop_environment(head, state_dir=folder) is None


async def test_servers_end_when_their_launcher_is_killed(launched):
    _, launcher, pids, _ = launched
    assert running(pids) == pids != []
    launcher.kill()
    assert await gone(pids)


async def test_an_id_that_was_given_to_another_program_is_not_signalled(tmp_path):
    head = BaseServerConfig(host="127.0.0.1", port=free_ports(1)[0])
    mine = known_process("launcher", os.getpid())
    path = state_path(head, tmp_path)
    write_state(path, KnownProcess("launcher", os.getpid(), mine.started + "0"), [])
    assert await stop_environment(head, state_dir=tmp_path) is None
    assert not path.exists()


def test_a_state_file_that_is_none_is_an_error_that_says_what_to_do(tmp_path):
    path = tmp_path / "state.json"
    path.write_text("{}")
    with pytest.raises(ServingError, match=r"is no state file of `gym env start`.*remove it"):
        read_state(path)
    assert read_state(tmp_path / "absent.json") is None


async def test_logs_that_cannot_be_written_are_said_with_the_key_that_moves_them(root, tmp_path):
    write_component(root, "colours")
    (tmp_path / "a_file").write_text("")
    with pytest.raises(ServingError, match=r"no logs can be written to .*a_file/logs.*\+\+nemo_gym_log_dir=<folder>"):
        await ProcessDeployment(configuration({"colours": {}}), tmp_path / "a_file" / "logs").start()


async def test_a_configuration_too_long_for_the_environment_is_said_to_be(root, tmp_path):
    write_component(root, "colours")
    with pytest.raises(ServingError, match=r"'colours' cannot be started: \d+ bytes of configuration are more than"):
        await ProcessDeployment(configuration({"colours": {}}, long="x" * 200_000), tmp_path).start()


async def test_an_environment_whose_state_cannot_be_written_is_stopped(root, tmp_path):
    write_component(root, "colours")
    (tmp_path / "a_file").write_text("")
    config = configuration({"colours": {}})
    with pytest.raises(ServingError, match=r"a_file/head.* cannot be written \(.*XDG_RUNTIME_DIR"):
        await start_environment(config, tmp_path / "logs", state_dir=tmp_path / "a_file")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", config.colours.resources_servers.colours.port), timeout=1)


async def test_a_start_that_fails_leaves_the_state_of_a_running_environment_alone(root, tmp_path):
    write_component(root, "colours")
    write_component(root, "lamp", DIES)
    config = configuration({"lamp": {}})
    head = BaseServerConfig.model_validate(dict(config.head_server))
    with pytest.raises(ServerDiedError):
        await start_environment(config, tmp_path / "logs", state_dir=tmp_path)
    assert not state_path(head, tmp_path).exists()
    write_state(state_path(head, tmp_path), known_process("launcher", os.getpid()), [])
    with socket.create_server(("127.0.0.1", head.port)), pytest.raises(PortTakenError):
        await start_environment(config, tmp_path / "logs", state_dir=tmp_path)
    assert state_path(head, tmp_path).exists()


async def test_an_environment_that_is_still_starting_is_written_down_already(root, tmp_path):
    write_component(root, "silent", "import threading\nthreading.Event().wait()\n")
    config = configuration({"silent": {}})
    path = state_path(BaseServerConfig.model_validate(dict(config.head_server)), tmp_path)
    starting = asyncio.create_task(start_environment(config, tmp_path / "logs", state_dir=tmp_path))
    assert await until(path.exists, 60)
    pids = [server.pid for server in read_state(path).servers]
    starting.cancel()
    await asyncio.wait({starting})
    assert await gone(pids)
    assert not path.exists()


async def test_starting_an_environment_writes_its_state_and_closing_strikes_it_out(root, tmp_path):
    write_component(root, "colours")
    environment = await start_environment(configuration({"colours": {}}), tmp_path / "logs", state_dir=tmp_path)
    state = read_state(environment.state_file)
    assert state.launcher.pid == os.getpid()
    assert [(one.name, one.pid) for one in state.servers] == [("colours", environment.instances[0].pid)]
    assert set(environment.log_files) == {"colours"}
    await environment.close()
    await environment.wait_until_ended()
    assert not environment.state_file.exists()

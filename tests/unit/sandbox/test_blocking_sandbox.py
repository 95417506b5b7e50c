"""The same sandbox for code that does not await."""

import asyncio
import signal
import threading

import pytest

from rollbook.sandbox import LocalProvider, Sandbox, SandboxSpec, SandboxStatus
from unit.sandbox.stand_in import AbleProvider, StandInProvider

SPEC = SandboxSpec(files={"x": "content"})


def threads_of_sandboxes():
    return [thread for thread in threading.enumerate() if thread.name == "rollbook-sandbox"]


def ended(before):
    for thread in set(threads_of_sandboxes()) - before:
        thread.join(20)
    return set(threads_of_sandboxes()) <= before


def test_a_command_runs_and_everything_ends(tmp_path):
    before = set(threads_of_sandboxes())
    with Sandbox({"local": {"workspace_root": str(tmp_path)}}, SPEC) as sandbox:
        assert sandbox.exec("cat x").stdout == "content"
        assert sandbox.exec("sleep 600", timeout_s=0.3).error_type == "timeout"
        assert sandbox.status() is SandboxStatus.RUNNING
        sandbox.download("x", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "content"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert ended(before)


def test_a_terminal_is_typed_into(tmp_path):
    with Sandbox(LocalProvider(str(tmp_path)), SandboxSpec()) as sandbox:
        assert sandbox.pty.exec("[ -t 1 ] && echo terminal", timeout_s=30).stdout == "terminal\r\n"


async def test_inside_of_a_loop_it_refuses():
    with pytest.raises(RuntimeError, match="use AsyncSandbox"):
        Sandbox(StandInProvider(), SPEC).start()


def test_a_setup_that_fails_stops_the_sandbox():
    before, provider = set(threads_of_sandboxes()), StandInProvider()

    def setup(_):
        raise LookupError("no compiler")

    with pytest.raises(LookupError):
        Sandbox(provider).start_with_setup(SPEC, setup)
    assert provider.calls()[-2:] == ["close", "aclose"]
    assert ended(before)


def test_an_error_of_the_provider_comes_through():
    provider = StandInProvider()
    provider.refuses = {"exec"}
    with Sandbox(provider, SPEC) as sandbox, pytest.raises(OSError, match="no exec today"):
        sandbox.exec("true")


def test_a_sandbox_is_found_again_by_its_descriptor():
    provider = AbleProvider()
    with Sandbox(provider, SPEC) as sandbox:
        other = Sandbox.connect(sandbox.serialize(), provider=provider, owns_provider=False)
        assert other.sandbox_id == sandbox.sandbox_id
        other.disconnect()
    assert provider.calls().count("close") == 1


def test_nothing_is_asked_of_a_sandbox_that_is_not_started():
    sandbox = Sandbox(StandInProvider())
    with pytest.raises(RuntimeError, match="call start first"):
        sandbox.exec("true")
    sandbox.stop()


class InterruptingProvider(StandInProvider):
    """One during whose `close` somebody presses Ctrl-C; it goes on when it may."""

    def __init__(self):
        super().__init__()
        self.may = threading.Event()

    async def close(self, handle):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        await asyncio.to_thread(self.may.wait, 20)
        await super().close(handle)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals reach the main thread")
def test_a_stop_that_is_interrupted_is_gone_through_with():
    before = set(threads_of_sandboxes())
    provider = InterruptingProvider()
    sandbox = Sandbox(provider, SPEC)
    sandbox.start()
    with pytest.raises(KeyboardInterrupt):
        sandbox.stop()
    provider.may.set()
    assert ended(before)
    assert provider.calls()[-2:] == ["close", "aclose"]

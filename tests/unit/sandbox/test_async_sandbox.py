"""One sandbox, as its user sees it, whichever provider it is of."""

import asyncio

import pytest

from rollbook.sandbox import (
    AsyncSandbox,
    ConnectableProvider,
    SandboxConfigError,
    SandboxError,
    SandboxSpec,
    SandboxStatus,
    SupportsSandboxEndpoint,
)
from unit.sandbox.stand_in import AbleProvider, StandInProvider

SPEC = SandboxSpec(image="x", files={"/app/a.txt": "é", "b.bin": b"\0\1"})


@pytest.fixture
def provider():
    return StandInProvider()


async def test_the_files_of_a_spec_are_there_when_it_has_started(provider):
    async with AsyncSandbox(provider, SPEC):
        assert provider.files == {"/app/a.txt": "é".encode(), "b.bin": b"\0\1"}


async def test_a_sandbox_ends_with_its_block_and_so_does_its_provider(provider):
    async with AsyncSandbox(provider, SPEC) as sandbox:
        assert sandbox.sandbox_id == "box-1"
    assert provider.calls()[-2:] == ["close", "aclose"]


async def test_a_provider_that_is_not_owned_lives_on(provider):
    async with AsyncSandbox(provider, SPEC, owns_provider=False):
        pass
    assert provider.calls()[-1] == "close"


async def test_stopping_twice_changes_nothing(provider):
    sandbox = await AsyncSandbox(provider).start(SPEC)
    await sandbox.stop()
    before = provider.calls()
    await sandbox.stop()
    assert provider.calls() == before


class HeldProvider(StandInProvider):
    """One whose `create` and `close` wait until they may go on."""

    def __init__(self):
        super().__init__()
        self.asked_for = asyncio.Event()
        self.may = asyncio.Event()

    async def create(self, spec):
        handle = await super().create(spec)
        await self.hold()
        return handle

    async def close(self, handle):
        await self.hold()
        await super().close(handle)

    async def hold(self):
        self.asked_for.set()
        await self.may.wait()


async def test_a_stop_that_is_given_up_is_gone_through_with():
    provider = HeldProvider()
    provider.may.set()
    sandbox = await AsyncSandbox(provider).start(SPEC)
    provider.may.clear()
    provider.asked_for.clear()
    stopping = asyncio.create_task(sandbox.stop())
    await provider.asked_for.wait()
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    provider.may.set()
    await sandbox.stop()
    assert provider.calls()[-2:] == ["close", "aclose"]


async def test_a_sandbox_that_is_stopped_while_it_starts_is_closed():
    provider = HeldProvider()
    sandbox = AsyncSandbox(provider)
    starting = asyncio.create_task(sandbox.start(SPEC))
    await provider.asked_for.wait()
    await sandbox.stop()
    provider.may.set()
    with pytest.raises(RuntimeError, match="stopped while it started"):
        await starting
    assert "close" in provider.calls()


async def test_a_sandbox_is_started_once(provider):
    sandbox = await AsyncSandbox(provider).start(SPEC)
    with pytest.raises(RuntimeError, match="started once"):
        await sandbox.start(SPEC)
    await sandbox.stop()
    with pytest.raises(RuntimeError, match="started once"):
        await sandbox.start(SPEC)


@pytest.mark.parametrize("given", [SPEC, None])
async def test_a_start_inside_the_block_that_started_the_sandbox_is_that_start_and_only_one_is(provider, given):
    async with AsyncSandbox(provider, SPEC) as sandbox:
        assert await sandbox.start(given) is sandbox
        assert provider.calls().count("create") == 1
        with pytest.raises(RuntimeError, match="started once"):
            await sandbox.start(given)
    with pytest.raises(RuntimeError, match="started once"):
        await sandbox.start()


async def test_another_sandbox_is_not_made_inside_of_a_block_that_has_one(provider):
    async with AsyncSandbox(provider, SPEC) as sandbox:
        with pytest.raises(RuntimeError, match="started once"):
            await sandbox.start(SandboxSpec(image="another"))


async def test_a_block_without_a_spec_waits_for_one(provider):
    async with AsyncSandbox(provider) as sandbox:
        assert provider.calls().count("create") == 0
        await sandbox.start(SPEC)
        assert await sandbox.status() is SandboxStatus.RUNNING


async def test_a_sandbox_without_a_spec_does_not_start(provider):
    with pytest.raises(RuntimeError, match="pass a SandboxSpec"):
        await AsyncSandbox(provider).start()


@pytest.mark.parametrize("use", ["exec", "upload", "download", "endpoint", "pause", "serialize"])
async def test_nothing_is_asked_of_a_sandbox_that_is_not_started(use):
    arguments = {"exec": ("true",), "upload": ("a", "b"), "download": ("a", "b"), "endpoint": (80,)}.get(use, ())
    with pytest.raises(RuntimeError, match="call start first"):
        await getattr(AsyncSandbox(AbleProvider()), use)(*arguments)


async def test_a_stopped_sandbox_says_so(provider):
    async with AsyncSandbox(provider, SPEC) as sandbox:
        assert await sandbox.status() is SandboxStatus.RUNNING
    assert await sandbox.status() is SandboxStatus.STOPPED
    with pytest.raises(RuntimeError, match="is stopped"):
        await sandbox.exec("true")


@pytest.mark.parametrize("refused", ["create", "upload_file"])
async def test_a_start_that_fails_leaves_nothing_behind(provider, refused):
    provider.refuses = {refused}
    with pytest.raises(OSError, match="today"):
        await AsyncSandbox(provider).start(SPEC)
    assert provider.calls()[-1] == "aclose"
    assert ("close" in provider.calls()) == (refused == "upload_file")


async def test_a_setup_that_fails_stops_the_sandbox(provider):
    async def setup(sandbox):
        await sandbox.exec("make")
        raise LookupError("no compiler")

    with pytest.raises(LookupError):
        await AsyncSandbox(provider).start_with_setup(SPEC, setup)
    assert provider.calls()[-3:] == ["exec", "close", "aclose"]


async def test_a_setup_that_is_cut_short_stops_the_sandbox(provider):
    begun = asyncio.Event()

    async def setup(_):
        begun.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(AsyncSandbox(provider).start_with_setup(SPEC, setup))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert provider.calls()[-2:] == ["close", "aclose"]


async def test_a_setup_returns_the_sandbox(provider):
    async def setup(_):
        return "ignored"

    assert isinstance(await AsyncSandbox(provider).start_with_setup(SPEC, setup), AsyncSandbox)


async def test_a_command_has_three_minutes_unless_told_otherwise(provider):
    async with AsyncSandbox(provider, SPEC) as sandbox:
        await sandbox.exec("make", cwd="/app", env={"A": "1"}, user="root")
    assert ("exec", "make", "/app", {"A": "1"}, 180, "root") in provider.asked


async def test_services_are_kept_by_a_provider_that_can():
    able = AbleProvider()
    async with AsyncSandbox(able, SPEC) as sandbox:
        await sandbox.exec("serve &", preserve_background_services=True)
    assert "exec_with_background_services" in able.calls()


async def test_services_are_asked_of_any_provider(provider):
    async with AsyncSandbox(provider, SPEC) as sandbox:
        await sandbox.exec("serve &", preserve_background_services=True)
    assert "exec" in provider.calls()


async def test_a_file_goes_in_and_comes_out(provider, tmp_path):
    (tmp_path / "in").write_text("content")
    async with AsyncSandbox(provider, SPEC) as sandbox:
        await sandbox.upload(tmp_path / "in", "/x")
        await sandbox.download("/x", str(tmp_path / "out"))
    assert (tmp_path / "out").read_text() == "content"


@pytest.mark.parametrize(
    ("use", "words"),
    [
        (lambda sandbox: sandbox.endpoint(80), "publish a port"),
        (lambda sandbox: sandbox.pause(), "pause"),
        (lambda sandbox: sandbox.resume(), "resume"),
        (lambda sandbox: sandbox.serialize(), "describe"),
        (lambda sandbox: sandbox.pty.create(), "no terminals"),
    ],
)
async def test_what_a_provider_cannot_do_is_said(provider, use, words):
    async with AsyncSandbox(provider, SPEC) as sandbox:
        with pytest.raises(SandboxError, match=f"'stand_in'.*{words}"):
            await use(sandbox)


async def test_a_sandbox_is_found_again_by_its_descriptor():
    able = AbleProvider()
    assert isinstance(able, ConnectableProvider)
    assert isinstance(able, SupportsSandboxEndpoint)
    async with AsyncSandbox(able, SPEC) as sandbox:
        descriptor = await sandbox.serialize(scope="agent")
        other = await AsyncSandbox.connect(descriptor, provider=able, owns_provider=False)
        assert other.sandbox_id == "box-1"
        assert await other.endpoint(80) == "http://box-1:80"
        await other.disconnect()
    assert able.calls().count("close") == 1


async def test_a_sandbox_that_cannot_be_reached_leaves_nothing_behind():
    able = AbleProvider()
    able.refuses = {"connect"}
    with pytest.raises(OSError, match="today"):
        await AsyncSandbox.connect({"sandbox_id": "gone"}, provider=able)
    assert able.calls()[-1] == "aclose"


def test_a_block_that_names_no_provider_is_refused_at_once():
    with pytest.raises(SandboxConfigError, match="'cloud'"):
        AsyncSandbox({"cloud": {}})

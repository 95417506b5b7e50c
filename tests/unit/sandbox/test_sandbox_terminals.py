"""Programs on terminals of local sandboxes."""

import asyncio
from contextlib import suppress
from pathlib import Path

import pytest

from rollbook.sandbox import (
    AsyncSandbox,
    LocalProvider,
    SandboxPtyError,
    SandboxPtySession,
    SandboxPtySpec,
    SandboxSpec,
)
from rollbook.sandbox.local.isolation import Isolation, isolation_here

HERE = isolation_here()
KINDS = [
    pytest.param(HERE, id="namespaces", marks=pytest.mark.skipif(not HERE.namespaces, reason="no namespaces here")),
    pytest.param(Isolation(why_not="asked for none"), id="plain"),
]


@pytest.fixture(params=KINDS)
async def sandbox(request, tmp_path):
    async with AsyncSandbox(LocalProvider(str(tmp_path), isolation=request.param), SandboxSpec()) as started:
        yield started


async def heard(session, words):
    """Return what is printed up to and with `words`."""
    seen = b""
    async with asyncio.timeout(30):
        while words not in seen:
            piece = await session.read()
            assert piece, seen
            seen += piece
    return seen


def terminals_held():
    """Return how many terminals this process holds the near end of."""
    held = 0
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            held += descriptor.readlink().name == "ptmx"
    return held


async def test_a_program_is_typed_to_on_a_terminal_of_the_size_that_was_asked_for(sandbox):
    session = await sandbox.pty.create(SandboxPtySpec(command="stty size; read x; echo got:$x; tty", rows=33, cols=99))
    assert isinstance(session, SandboxPtySession)
    await heard(session, b"33 99")
    await session.write("é✓\n".encode())
    assert "got:é✓".encode() in await heard(session, b"/dev/pts/")
    assert await session.wait(30) == 0
    assert await session.read() == b""
    await session.close()


async def test_a_key_interrupts_what_runs(sandbox):
    session = await sandbox.pty.create(SandboxPtySpec(command="trap 'echo interrupted; exit 5' INT; echo up; read x"))
    await heard(session, b"up")
    await session.write(b"\x03")
    await heard(session, b"interrupted")
    assert await session.wait(30) == 5
    await session.close()


async def test_a_terminal_can_be_resized(sandbox):
    session = await sandbox.pty.create(SandboxPtySpec(command="echo up; read x; stty size"))
    await heard(session, b"up")
    await session.resize(10, 20)
    await session.write(b"\n")
    await heard(session, b"10 20")
    await session.close()


async def test_a_terminal_is_found_again_until_it_is_closed(sandbox):
    session = await sandbox.pty.create()
    assert await sandbox.pty.attach(session.session_id) is session
    assert await session.wait(0) is None
    await session.close()
    await session.close()
    with pytest.raises(SandboxPtyError, match="no terminal"):
        await sandbox.pty.attach(session.session_id)
    with pytest.raises(SandboxPtyError, match="closed"):
        await session.write(b"x")


async def test_without_a_terminal_a_program_has_a_line(sandbox):
    session = await sandbox.pty.create(SandboxPtySpec(command="[ -t 0 ] || echo none; cat", pty=False))
    await heard(session, b"none")
    await session.write(b"typed\n")
    await heard(session, b"typed")
    await session.close()


@pytest.mark.parametrize("detach", [False, True])
async def test_a_command_on_a_terminal_has_a_result(sandbox, detach):
    result = await sandbox.pty.exec("echo out; echo err >&2; exit 3", timeout_s=60, detach=detach, poll_interval_s=0.05)
    assert (result.stdout, result.return_code, result.error_type) == ("out\r\nerr\r\n", 3, None)


async def test_a_command_on_a_terminal_that_takes_too_long_is_a_result(sandbox):
    result = await sandbox.pty.exec("echo up; sleep 600", timeout_s=1)
    assert (result.return_code, result.error_type) == (124, "timeout")


async def test_a_terminal_ends_with_its_sandbox(sandbox):
    session = await sandbox.pty.create(SandboxPtySpec(command="echo up; sleep 600"))
    await heard(session, b"up")
    await sandbox.stop()
    assert await session.wait(30) != 0
    await session.close()


@pytest.mark.parametrize("pty", [True, False])
async def test_whoever_reads_a_terminal_that_is_closed_reads_its_end(sandbox, pty):
    session = await sandbox.pty.create(SandboxPtySpec(command="sleep 600", pty=pty))
    readers = [asyncio.create_task(session.read()) for _ in range(2)]
    await asyncio.sleep(0)
    await session.close()
    async with asyncio.timeout(30):
        assert await asyncio.gather(*readers) == [b"", b""]
    await session.resize(10, 20)


@pytest.mark.parametrize("pty", [True, False])
async def test_whoever_types_into_a_terminal_that_is_closed_is_told(sandbox, pty):
    session = await sandbox.pty.create(SandboxPtySpec(command="sleep 600", pty=pty))
    writer = asyncio.create_task(session.write(b"x" * 10_000_000))
    await asyncio.sleep(0)
    await session.close()
    with pytest.raises(SandboxPtyError, match="closed"):
        async with asyncio.timeout(30):
            await writer


async def test_several_may_read_one_terminal(sandbox):
    session = await sandbox.pty.create(
        SandboxPtySpec(command="stty -echo; echo up; read x; echo 1; read x; echo 2; cat")
    )
    await heard(session, b"up")
    readers = [asyncio.create_task(session.read()) for _ in range(2)]
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await session.write(b"\n")
        await asyncio.wait(readers, return_when=asyncio.FIRST_COMPLETED)
        await session.write(b"\n")
        assert all(await asyncio.gather(*readers))
    await session.close()


async def test_a_sandbox_that_ends_lets_go_of_its_terminals(sandbox):
    before = terminals_held()
    sessions = [await sandbox.pty.create(SandboxPtySpec(command="sleep 600")) for _ in range(3)]
    assert terminals_held() == before + 3
    reader = asyncio.create_task(sessions[0].read())
    await asyncio.sleep(0)
    await sandbox.stop()
    assert terminals_held() == before
    async with asyncio.timeout(30):
        assert await reader == b""
    assert await sessions[1].read() == b""
    with pytest.raises(SandboxPtyError, match="closed"):
        await sessions[1].write(b"x")

"""Programs on terminals of local sandboxes."""

import asyncio

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

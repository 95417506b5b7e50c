"""Commands in local sandboxes, on this machine, with namespaces and without."""

import asyncio
import fcntl
import logging
import os
import shlex
import sys

import pytest

from rollbook.sandbox import AsyncSandbox, LocalProvider, SandboxPathError, SandboxSpec, SandboxStatus
from rollbook.sandbox.local.isolation import Isolation, isolation_here

PLAIN = Isolation(why_not="asked for none")
HERE = isolation_here()
needs_namespaces = pytest.mark.skipif(not HERE.namespaces, reason=f"no namespaces here: {HERE.why_not}")
KINDS = [pytest.param(HERE, id="namespaces", marks=needs_namespaces), pytest.param(PLAIN, id="plain")]
LONG = "sleep 600"


@pytest.fixture(params=KINDS)
def isolation(request):
    return request.param


@pytest.fixture
async def sandbox(isolation, tmp_path):
    provider = LocalProvider(str(tmp_path / "boxes"), isolation=isolation, processes=32)
    async with AsyncSandbox(provider, SandboxSpec(env={"FROM_SPEC": "1"})) as started:
        yield started


def root(sandbox):
    return sandbox.handle.raw["workspace"]


async def freed(sandbox, name="held"):
    """Return once nobody holds the lock that `held` takes."""
    with (root(sandbox) / name).open("w") as file:
        async with asyncio.timeout(60):
            await asyncio.to_thread(fcntl.flock, file, fcntl.LOCK_EX)


def make_deep(folder, levels):
    descriptor = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=descriptor)
        above, descriptor = descriptor, os.open("d", os.O_RDONLY, dir_fd=descriptor)
        os.close(above)
    os.close(descriptor)


def held(then=LONG):
    """Return a command that holds a lock for as long as it, or a child of it, lives."""
    return f"exec 9>held; flock 9; {then}"


async def test_a_command_has_an_output_two_streams_and_a_code(sandbox):
    result = await sandbox.exec("echo out; echo err >&2; exit 7")
    assert (result.stdout, result.stderr, result.return_code, result.error_type) == ("out\n", "err\n", 7, None)


@pytest.mark.parametrize("text", ["héllo ✓ 漢字", "a'b\"c $HOME", "line\nbreak"])
async def test_text_of_any_language_goes_in_and_comes_out(sandbox, text):
    assert (await sandbox.exec(f"printf %s {shlex.quote(text)}")).stdout == text


async def test_output_that_is_no_text_is_replaced(sandbox):
    assert (await sandbox.exec(r"printf 'a\377b'")).stdout == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize(("command", "code"), [("kill -SEGV $$", 139), ("no_such_program", 127), ("exit 256", 0)])
async def test_an_end_of_any_kind_is_a_code(sandbox, command, code):
    result = await sandbox.exec(command)
    assert (result.return_code, result.error_type) == (code, None)


async def test_a_command_with_a_nul_is_a_result(sandbox):
    result = await sandbox.exec("echo a\0b")
    assert result.return_code == 126
    assert "NUL" in result.stderr


async def test_a_command_longer_than_an_argument_is_run(sandbox):
    assert (await sandbox.exec(f"echo {'y' * 200_000} | wc -c")).stdout.strip() == "200001"
    assert (await sandbox.exec("ls -A")).stdout.split() == ["tmp"]


@pytest.mark.parametrize("command", ["ls -A", f"ls -A # {'y' * 200_000}"])
async def test_nothing_of_ours_lies_in_the_directory_while_a_command_runs(sandbox, command):
    assert (await sandbox.exec(command, preserve_background_services=True)).stdout.split() == ["tmp"]


async def test_an_output_that_is_swapped_for_a_link_is_not_read(sandbox, tmp_path):
    (tmp_path / "victim").write_text("precious")
    swap = f'f=$(readlink /proc/$$/fd/1); rm -f "$f"; ln -s {tmp_path}/victim "$f"; echo mine'
    assert (await sandbox.exec(swap, preserve_background_services=True)).stdout == "mine\n"


async def test_links_that_lie_in_wait_are_not_written_through(sandbox, tmp_path):
    (tmp_path / "victim").write_text("precious")
    await sandbox.exec(
        f"for i in 1 2 3 4; do for k in out err sh; do ln -s {tmp_path}/victim .rollbook-$i.$k; done; done"
    )
    assert (await sandbox.exec("echo mine", preserve_background_services=True)).stdout == "mine\n"
    assert (await sandbox.exec(f"echo mine # {'y' * 200_000}")).stdout == "mine\n"
    assert (tmp_path / "victim").read_text() == "precious"


async def test_pipes_that_lie_in_wait_hold_nobody_up(sandbox):
    await sandbox.exec("for i in 1 2 3 4; do mkfifo .rollbook-$i.out .rollbook-$i.err .rollbook-$i.sh; done")
    assert (await sandbox.exec("echo mine", preserve_background_services=True)).stdout == "mine\n"


async def test_a_command_sees_its_own_environment_and_nothing_of_ours(sandbox, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    result = await sandbox.exec("env", env={"FROM_CALL": "2"})
    names = {line.partition("=")[0] for line in result.stdout.splitlines()}
    ours = {"PATH", "HOME", "LANG", "TMPDIR", "ROLLBOOK_SANDBOX", "ROLLBOOK_SANDBOX_COMMAND"}
    assert names - {"PWD", "OLDPWD", "SHLVL", "_"} == ours | {"FROM_SPEC", "FROM_CALL"}
    assert f"HOME={root(sandbox)}\n" in result.stdout
    assert f"TMPDIR={root(sandbox) / 'tmp'}\n" in result.stdout


async def test_nothing_is_typed_into_a_command(sandbox):
    assert (await sandbox.exec("cat; echo done", timeout_s=60)).stdout == "done\n"


async def test_a_command_begins_in_the_workdir(isolation, tmp_path):
    provider = LocalProvider(str(tmp_path), isolation=isolation)
    async with AsyncSandbox(provider, SandboxSpec(workdir="/app/src", files={"/app/src/x": "here"})) as sandbox:
        assert (await sandbox.exec("cat x")).stdout == "here"
        assert (await sandbox.exec("pwd", cwd="..")).stdout == f"{root(sandbox)}/app\n"
        assert (await sandbox.exec("pwd", cwd="/")).stdout == f"{root(sandbox)}\n"


async def test_a_folder_that_is_not_there_is_a_result(sandbox):
    result = await sandbox.exec("true", cwd="/nowhere")
    assert result.return_code == 126
    assert "nowhere" in result.stderr


async def test_a_command_in_a_folder_outside_is_refused(sandbox):
    with pytest.raises(SandboxPathError, match="leads out"):
        await sandbox.exec("true", cwd="../../..")


async def test_a_command_that_takes_too_long_is_a_result_with_what_it_printed(sandbox):
    result = await sandbox.exec(f"echo begun; {LONG}", timeout_s=3)
    assert (result.stdout, result.return_code, result.error_type) == ("begun\n", 124, "timeout")
    assert "3 s" in result.stderr


@pytest.mark.parametrize(
    "runaway",
    [LONG, f"({LONG}) & wait", f"setsid {LONG} & wait", f"(setsid setsid {LONG} >/dev/null 2>&1 &) ; {LONG}"],
)
async def test_whatever_a_command_started_ends_with_its_time(sandbox, runaway):
    assert (await sandbox.exec(held(runaway), timeout_s=0.5)).error_type == "timeout"
    await freed(sandbox)


@pytest.mark.parametrize("left", [f"{LONG} &", f"nohup {LONG} >/dev/null 2>&1 &", f"setsid {LONG} >/dev/null 2>&1 &"])
async def test_what_a_command_leaves_behind_ends_with_it(sandbox, left):
    result = await sandbox.exec(held(f"{left} echo ready"), timeout_s=60)
    assert (result.stdout, result.error_type) == ("ready\n", None)
    await freed(sandbox)


@needs_namespaces
async def test_an_emptied_environment_and_a_session_of_its_own_save_nobody(tmp_path):
    async with AsyncSandbox(LocalProvider(str(tmp_path), isolation=HERE), SandboxSpec()) as sandbox:
        await sandbox.exec(held(f"env -i setsid setsid {LONG} >/dev/null 2>&1 & echo"))
        await freed(sandbox)


async def test_a_command_that_is_given_up_ends(sandbox):
    task = asyncio.create_task(sandbox.exec(held(f"echo > begun; {LONG}")))
    await sandbox.exec("until [ -e begun ]; do sleep 0.05; done", timeout_s=60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await freed(sandbox)


async def test_output_without_end_is_ended_and_bounded(sandbox):
    result = await sandbox.exec("yes", timeout_s=60)
    assert (result.return_code, result.error_type) == (125, "output_limit")
    assert len(result.stdout) < 4_100_000
    assert "bytes left out" in result.stdout


async def test_a_fork_bomb_ends_with_its_time(sandbox):
    if sandbox.handle.raw["isolation"].startswith("plain"):
        bomb = "for i in 1 2 3 4 5 6 7 8; do (for j in 1 2 3 4 5 6 7 8; do sleep 600 & done; sleep 600) & done; wait"
    else:
        bomb = "f() { f | f & }; f; sleep 600"
    assert (await sandbox.exec(held(bomb), timeout_s=1)).error_type == "timeout"
    await freed(sandbox)
    assert (await sandbox.exec("echo alive")).stdout == "alive\n"


@needs_namespaces
async def test_there_are_no_more_processes_than_the_sandbox_may_have(tmp_path):
    provider = LocalProvider(str(tmp_path), isolation=HERE, processes=8)
    async with AsyncSandbox(provider, SandboxSpec()) as sandbox:
        result = await sandbox.exec("sh -c 'for i in $(seq 400); do sleep 600 & done; echo made'", timeout_s=60)
    if result.stdout == "made\n":
        pytest.skip("this kernel counts no processes of this user")
    assert "fork" in result.stderr


async def test_memory_is_bounded(isolation, tmp_path):
    provider = LocalProvider(str(tmp_path), isolation=isolation)
    async with AsyncSandbox(provider, SandboxSpec(resources={"memory_mib": 256})) as sandbox:
        result = await sandbox.exec(f"{sys.executable} -I -S -c 'bytearray(1 << 30)'")
    assert result.return_code == 1
    assert "MemoryError" in result.stderr


async def test_a_file_is_bounded_and_no_core_is_written(isolation, tmp_path):
    provider = LocalProvider(str(tmp_path), isolation=isolation)
    async with AsyncSandbox(provider, SandboxSpec(resources={"disk_gib": 0.001})) as sandbox:
        result = await sandbox.exec("head -c 5000000 /dev/zero > big; stat -c %s big; ulimit -c; ulimit -n")
    assert result.stdout.split() == ["2097152", "0", "1024"]


async def test_processor_time_is_bounded_by_the_time_of_the_command(isolation, tmp_path):
    provider = LocalProvider(str(tmp_path), isolation=isolation)
    async with AsyncSandbox(provider, SandboxSpec(resources={"cpu": 2})) as sandbox:
        assert (await sandbox.exec("ulimit -t", timeout_s=10)).stdout == "25\n"
        assert (await sandbox.exec("ulimit -t", timeout_s=None)).stdout == "unlimited\n"


@needs_namespaces
async def test_there_is_no_network_but_the_loopback(tmp_path):
    async with AsyncSandbox(LocalProvider(str(tmp_path), isolation=HERE), SandboxSpec()) as sandbox:
        seen = await sandbox.exec("tail -n +3 /proc/net/dev | cut -d: -f1; : </dev/tcp/192.0.2.1/80")
        assert seen.stdout.split() == ["lo"]
        assert "unreachable" in seen.stderr


@needs_namespaces
async def test_the_network_is_there_when_it_was_asked_for_unless_a_policy_denies_it(tmp_path):
    provider = LocalProvider(str(tmp_path), isolation=HERE, network=True)
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reach = f": </dev/tcp/127.0.0.1/{port}"
    denied = {"network_policy": {"defaultAction": "deny", "egress": []}}
    async with server, AsyncSandbox(provider, SandboxSpec(), owns_provider=False) as sandbox:
        assert (await sandbox.exec(reach)).return_code == 0
        async with AsyncSandbox(provider, SandboxSpec(provider_options=denied), owns_provider=False) as other:
            assert (await other.exec(reach)).return_code == 1


@needs_namespaces
async def test_programs_of_this_machine_are_out_of_sight(tmp_path):
    async with AsyncSandbox(LocalProvider(str(tmp_path), isolation=HERE), SandboxSpec()) as sandbox:
        seen = await sandbox.exec("ls /proc | grep -c '^[0-9]'")
    assert int(seen.stdout) < 8


async def test_a_service_outlives_its_command_and_ends_with_the_sandbox(sandbox):
    await sandbox.exec(held("(until [ -e told ]; do sleep 0.05; done; echo heard > answer) &"), timeout_s=60)
    await freed(sandbox)
    started = await sandbox.exec(
        held("(until [ -e told ]; do sleep 0.05; done; echo heard > answer; sleep 600) & echo up"),
        preserve_background_services=True,
    )
    assert started.stdout == "up\n"
    answer = await sandbox.exec("touch told; until [ -e answer ]; do sleep 0.05; done; cat answer", timeout_s=60)
    assert answer.stdout == "heard\n"
    with (root(sandbox) / "held").open("w") as lock:
        await sandbox.stop()
        async with asyncio.timeout(60):
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)


async def test_a_service_that_does_not_come_up_in_time_ends(sandbox):
    result = await sandbox.exec(held(f"echo begun; {LONG}"), timeout_s=3, preserve_background_services=True)
    assert (result.stdout, result.error_type) == ("begun\n", "timeout")
    await freed(sandbox)


async def test_the_directory_is_gone_when_the_sandbox_has_ended_whatever_is_in_it(sandbox):
    await sandbox.exec("mkdir -p locked/in; chmod 000 locked")
    make_deep(root(sandbox), 1100)
    place = root(sandbox)
    await sandbox.stop()
    assert [*place.parent.iterdir()] == []


async def given_up(ending, turns):
    """Await `ending` for that many turns of the loop, and give it up."""
    task = asyncio.create_task(ending)
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("turns", [1, 2, 4])
async def test_a_stop_that_is_given_up_leaves_nothing_behind(sandbox, turns):
    await sandbox.exec(held(f"{LONG} &"), preserve_background_services=True)
    place = root(sandbox)
    with (place / "held").open("w") as lock:
        await given_up(sandbox.stop(), turns)
        await sandbox.stop()
        assert [*place.parent.iterdir()] == []
        async with asyncio.timeout(60):
            await asyncio.to_thread(fcntl.flock, lock, fcntl.LOCK_EX)


async def test_a_close_that_is_given_up_kills_at_once_and_can_be_asked_for_again(isolation, tmp_path):
    provider = LocalProvider(str(tmp_path), isolation=isolation)
    handle = await provider.create(SandboxSpec())
    running = asyncio.create_task(provider.exec(handle, LONG))
    await provider.exec(handle, "true")
    await given_up(provider.close(handle), 1)
    assert await provider.status(handle) is SandboxStatus.STOPPED
    assert (await running).error_type == "sandbox"
    await provider.close(handle)
    await provider.aclose()
    assert [*tmp_path.iterdir()] == []


async def test_commands_run_side_by_side(sandbox):
    first = sandbox.exec("echo > one; until [ -e two ]; do sleep 0.05; done", timeout_s=60)
    second = sandbox.exec("echo > two; until [ -e one ]; do sleep 0.05; done", timeout_s=60)
    results = await asyncio.gather(first, second, *(sandbox.exec(f"echo {i}") for i in range(4)))
    assert [result.return_code for result in results] == [0] * 6
    assert [result.stdout for result in results[2:]] == [f"{i}\n" for i in range(4)]


async def test_a_sandbox_that_outlives_its_time_is_stopped(isolation, tmp_path):
    provider = LocalProvider(str(tmp_path), isolation=isolation)
    async with AsyncSandbox(provider, SandboxSpec(ttl_s=0.2)) as sandbox:
        result = await sandbox.exec(LONG, timeout_s=60)
        assert result.return_code != 0
        assert await sandbox.status() is SandboxStatus.STOPPED
        assert (await sandbox.exec("true")).error_type == "sandbox"


@needs_namespaces
async def test_a_sandbox_whose_holder_died_answers_with_a_fault(tmp_path):
    provider = LocalProvider(str(tmp_path), isolation=HERE)
    async with AsyncSandbox(provider, SandboxSpec()) as sandbox:
        await sandbox.exec("kill -9 -1; echo no", preserve_background_services=True, timeout_s=60)
        result = await sandbox.exec("true", timeout_s=60)
    assert result.error_type in {None, "sandbox"}


async def test_ending_the_provider_ends_every_sandbox(isolation, tmp_path):
    provider = LocalProvider(str(tmp_path), isolation=isolation)
    handles = [await provider.create(SandboxSpec()) for _ in range(2)]
    await provider.aclose()
    assert [*tmp_path.iterdir()] == []
    assert [await provider.status(handle) for handle in handles] == [SandboxStatus.STOPPED] * 2
    assert (await provider.exec(handles[0], "true")).error_type == "sandbox"
    await provider.close(handles[0])


def test_what_holds_is_told_in_a_sentence():
    assert PLAIN.describe(network=False).startswith("plain subprocesses, with the network")
    assert "no network" in Isolation(unshare="u", nsenter="n").describe(network=False)


def test_it_is_said_once_that_this_is_no_security_boundary(caplog):
    isolation_here.cache_clear()
    with caplog.at_level(logging.WARNING):
        isolation_here()
        isolation_here()
    assert [
        record.getMessage().startswith("local sandboxes are no security boundary") for record in caplog.records
    ] == [True]

import asyncio
import fcntl
import os
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from rollbook.errors import ConfigError, ServingError
from rollbook.servers.http.waiting import until
from rollbook.servers.serving import installers
from rollbook.servers.serving.child_process import signal_group
from rollbook.servers.serving.install_command import run_command
from rollbook.servers.serving.installers import Uv, VenvAndPip, installer
from rollbook.servers.serving.virtual_environment import Contents, VirtualEnvironments

SECRET = "https://me:open-sesame@example.test/simple"
CONTENTS = Contents(
    ("rollbook==1",), ("tiktoken",), (f"--find-links {SECRET}",), ("numpy==2",), "/usr/bin/py", "3.11.1"
)


class Recorded:
    """An installer's commands, none of which is run; the first of each environment leaves half of one."""

    def __init__(self, code=0, says="all is well"):
        self.commands = []
        self.lines = []
        self.code = code
        self.says = says
        self.going_on = asyncio.Event()
        self.going_on.set()

    async def __call__(self, command, folder, log, variables, held):
        self.commands.append(tuple(command))
        await self.going_on.wait()
        (folder / "venv").mkdir(exist_ok=True)
        log.write_text(self.says)
        return self.code

    def shop(self, folder, **options):
        return VirtualEnvironments(folder, Uv(("uv",)), self.lines.append, self, **options)


async def test_an_environment_is_made_once_and_told_with_its_time(tmp_path):
    recorded = Recorded()
    shop = recorded.shop(tmp_path)
    python = await shop.python_for(CONTENTS, "resources_servers/tool")
    place = tmp_path / CONTENTS.digest
    assert python == place / "venv" / "bin" / "python"
    assert recorded.commands == [
        ("uv", "venv", "--python", "/usr/bin/py", str(place / "venv")),
        (
            *("uv", "pip", "install", "--python", str(python), "--requirement", str(place / "requirements.txt")),
            *("--override", str(place / "overrides.txt")),
        ),
    ]
    assert (place / "requirements.txt").read_text().splitlines() == [
        f"--find-links {SECRET}",
        "rollbook==1",
        "tiktoken",
    ]
    assert recorded.lines[0].startswith("making an environment for resources_servers/tool with uv, Python 3.11.1: roll")
    assert recorded.lines[1].startswith("the environment of resources_servers/tool is made (0.")
    assert await shop.python_for(CONTENTS, "resources_servers/other") == python
    assert (len(recorded.commands), len(recorded.lines)) == (2, 2)


async def test_no_secret_is_on_a_command_line_or_for_others_to_read(tmp_path):
    recorded = Recorded()
    contents = msgspec.structs.replace(CONTENTS, packages=("pkg @ git+https://me:open-sesame@example.test/p.git",))
    await recorded.shop(tmp_path).python_for(contents, "tool")
    assert not any("open-sesame" in word for command in recorded.commands for word in command)
    assert not any("open-sesame" in line for line in recorded.lines)
    place = tmp_path / contents.digest
    modes = [path.stat().st_mode & 0o077 for path in (place, place / "requirements.txt", place / "made.json")]
    assert modes == [0, 0, 0]


async def test_two_that_want_one_environment_at_once_make_it_once(tmp_path):
    recorded = Recorded()
    shops = [recorded.shop(tmp_path) for _ in range(2)]
    found = await asyncio.gather(*(shop.python_for(CONTENTS, "tool") for shop in shops))
    assert found[0] == found[1]
    assert len(recorded.commands) == 2
    assert sum("another process makes the environment of tool; waiting" in line for line in recorded.lines) == 1


async def test_a_half_made_environment_is_made_anew(tmp_path):
    recorded = Recorded()
    left = tmp_path / CONTENTS.digest / "venv" / "left-over"
    left.mkdir(parents=True)
    await recorded.shop(tmp_path).python_for(CONTENTS, "tool")
    assert not left.exists()
    assert len(recorded.commands) == 2


async def test_a_failure_shows_the_installers_last_lines_without_credentials_and_where_they_are(tmp_path):
    recorded = Recorded(code=3, says=f"Looking in {SECRET}\nno such package: tiktoken\n")
    log = tmp_path / CONTENTS.digest / "install.log"
    with pytest.raises(ServingError) as caught:
        await recorded.shop(tmp_path).python_for(CONTENTS, "tool")
    said = str(caught.value)
    assert said.startswith(
        f"no environment can be made for tool: uv ended with exit code 3 (all of what it said: {log})"
    )
    assert said.endswith("Looking in https://****@example.test/simple\nno such package: tiktoken")
    recorded.code = 0
    await recorded.shop(tmp_path).python_for(CONTENTS, "tool")
    assert len(recorded.commands) == 3


async def test_who_waits_for_another_process_longer_than_allowed_is_told_which(tmp_path):
    lock = tmp_path / f"{CONTENTS.digest}.lock"
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(ServingError, match=r"more than 0 s \(.*\.lock\).*uv_lock_timeout_seconds"):
            await Recorded().shop(tmp_path, patience=0.0).python_for(CONTENTS, "tool")
    finally:
        os.close(descriptor)


async def test_an_interrupted_making_leaves_nothing_that_counts(tmp_path):
    recorded = Recorded()
    recorded.going_on.clear()
    making = asyncio.create_task(recorded.shop(tmp_path).python_for(CONTENTS, "tool"))
    assert await until(lambda: bool(recorded.commands), 60)
    making.cancel()
    with pytest.raises(asyncio.CancelledError):
        await making
    assert not (tmp_path / CONTENTS.digest / "made.json").exists()


KILLED = """
import asyncio, sys
from pathlib import Path
from rollbook.servers.serving.virtual_environment import Contents, VirtualEnvironments

class Slow:
    name = "slow"
    def commands(self, python, venv, inside, requirements, overrides, *, built):
        return (("/bin/sh", "-c", f"echo $$ > {venv}.pid; read line < {sys.argv[1]}; echo late > {venv}.late"),)

contents = Contents((), ("tiktoken",), (), (), "py", "3")
asyncio.run(VirtualEnvironments(Path(sys.argv[2]), Slow(), print).python_for(contents, "tool"))
"""


async def test_an_installer_that_outlives_its_process_is_waited_for(tmp_path):
    gate, folder, recorded = tmp_path / "gate", tmp_path / "environments", Recorded()
    os.mkfifo(gate)
    contents = Contents((), ("tiktoken",), (), (), "py", "3")
    place = folder / contents.digest
    started = place / "venv.pid"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", KILLED, str(gate), str(folder)), stdout=asyncio.subprocess.DEVNULL
    )
    try:
        assert await until(lambda: started.is_file() and bool(started.read_text()), 60)
    finally:
        process.kill()
        await process.wait()
    try:
        with pytest.raises(ServingError, match="another process has been making the environment of tool"):
            await recorded.shop(folder, patience=0.0).python_for(contents, "tool")
        assert started.is_file()
    finally:
        waiting = os.open(gate, os.O_RDWR)
        os.write(waiting, b"go on\n")
    await recorded.shop(folder).python_for(contents, "tool")
    os.close(waiting)
    assert not (place / "venv.late").exists()
    assert len(recorded.commands) == 2


async def test_what_an_installer_leaves_running_keeps_nobody_from_its_environment(tmp_path):
    kept = []

    class Leaving(Recorded):
        async def __call__(self, command, folder, log, variables, held):
            kept.extend(map(os.dup, held))
            return await super().__call__(command, folder, log, variables, held)

    failing = Leaving(code=3)
    with pytest.raises(ServingError, match="exit code 3"):
        await failing.shop(tmp_path).python_for(CONTENTS, "tool")
    await Recorded().shop(tmp_path, patience=0.0).python_for(CONTENTS, "tool")
    for descriptor in kept:
        os.close(descriptor)


async def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ServingError, match=r"file/here.*\+\+uv_venv_dir=<folder>"):
        await Recorded().shop(tmp_path / "file" / "here").python_for(CONTENTS, "tool")


@pytest.mark.parametrize(
    "other",
    [
        {"own": ("rollbook==2",)},
        {"packages": ("tiktoken==1",)},
        {"overrides": ()},
        {"python": "/usr/bin/other"},
        {"version": "3.12"},
    ],
)
def test_whatever_goes_into_an_environment_is_part_of_its_name(other):
    given = {name: getattr(CONTENTS, name) for name in Contents.__struct_fields__}
    assert Contents(**given).digest == CONTENTS.digest
    assert Contents(**{**given, **other}).digest != CONTENTS.digest


async def test_uv_builds_what_lies_in_a_folder_anew(tmp_path):
    named, unnamed = tmp_path / "named", tmp_path / "unnamed"
    named.mkdir()
    unnamed.mkdir()
    (named / "pyproject.toml").write_text('[project]\nname = "lib"\n')
    ours = f"rollbook[math] @ {unnamed.as_uri()}"
    for lines, options in [
        (
            (ours, str(named), f"-e {unnamed}", "tiktoken"),
            ("--refresh-package", "rollbook", "--refresh-package", "lib"),
        ),
        ((ours, str(unnamed)), ("--refresh",)),
        (("tiktoken", f"-e {unnamed}"), ()),
    ]:
        recorded = Recorded()
        contents = Contents((), lines, (), (), "py", "3")
        await recorded.shop(tmp_path / "environments").python_for(contents, "tool")
        where = tmp_path / "environments" / contents.digest / "requirements.txt"
        assert recorded.commands[1][5:] == ("--requirement", str(where), *options)


def test_pip_takes_overrides_as_bounds():
    place = Path("/p")
    commands = VenvAndPip().commands("py", place / "venv", place / "python", place / "r.txt", place / "o.txt")
    assert commands[0] == ("py", "-m", "venv", "/p/venv")
    assert commands[1][:4] == ("/p/python", "-m", "pip", "install")
    assert commands[1][-4:] == ("--requirement", "/p/r.txt", "--constraint", "/p/o.txt")


def test_uv_is_taken_where_it_is(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(installers, "_MODULE", "surely_missing")
    assert installer() == VenvAndPip()
    program = tmp_path / "uv"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert installer(verbose=True) == Uv((str(program),), verbose=True)


def test_pip_needs_another_python_on_the_search_path(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match=r"no Python 3\.99\.1 on the search path .*pip install uv"):
        VenvAndPip().interpreter("3.99.1")
    program = tmp_path / "python3.99"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert VenvAndPip().interpreter("3.99.1") == str(program)
    assert Uv(("uv",)).interpreter("3.99.1") == "3.99.1"


async def test_a_command_sees_no_package_of_ours_and_writes_to_its_log(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/ours")
    command = ["/bin/sh", "-c", 'echo "path <$PYTHONPATH> $MORE"; echo wrong >&2; exit 4']
    assert await run_command(command, tmp_path, tmp_path / "log", {"MORE": "more"}) == 4
    assert (tmp_path / "log").read_text() == "path <> more\nwrong\n"


async def test_a_cancelled_command_ends_with_all_that_it_started(tmp_path):
    command = ["/bin/sh", "-c", "sleep 600 & echo $! $$; wait"]
    running = asyncio.create_task(run_command(command, tmp_path, tmp_path / "log", {}))
    log = tmp_path / "log"
    assert await until(lambda: log.is_file() and len(log.read_text().split()) > 1, 60)
    _, shell = log.read_text().split()
    try:
        running.cancel()
        await asyncio.wait({running}, timeout=60)
        assert running.cancelled(), "the command goes on"
        with pytest.raises(ProcessLookupError):
            os.kill(int(shell), 0)
    finally:
        signal_group(int(shell), signal.SIGKILL)

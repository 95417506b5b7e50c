"""Benchmarks that are prepared: what is looked at before anything runs, what came of each, and an interrupt."""

import asyncio
import json
import os
import select
import signal
import sys
import threading

import pytest

from rollbook.cli.entry import exit_code_of
from rollbook.config.benchmark_preparation import BenchmarkPreparation
from rollbook.config.parser import GlobalConfigDictParser
from rollbook.errors import ConfigError
from rollbook.verbs.benchmark_script import read_script
from rollbook.verbs.prepare_benchmarks import prepare_benchmarks

CONFIG = """
{name}:
  resources_servers:
    string_match:
      entrypoint: app.py
      domain: knowledge
      datasets:
      - name: {short}
        type: benchmark
        jsonl_fpath: {rows}
        prepare_script: benchmarks/{name}/prepare.py
        prepare_dependencies: {dependencies}
"""
WRITES = """
from pathlib import Path

def prepare(jsonl_fpath, colour="blue"):
    path = Path(jsonl_fpath)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('{"question": "' + colour + '"}\\n')
    return path
"""


SLOW = """
import os
import select
import signal
from pathlib import Path

def prepare(jsonl_fpath):
    Path({began!r}).write_text(str(os.getpid()))
    signal.pause()
"""


@pytest.fixture
def benchmark(tmp_path, monkeypatch):
    """Write a benchmark of a name and a script, and return its folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")

    def written(name, script=WRITES, rows=None, dependencies="[]"):
        folder = tmp_path / "benchmarks" / name
        folder.mkdir(parents=True)
        short = name.rpartition("/")[2]
        rows = rows or f"${{cache_dir}}/{short}.jsonl"
        text = CONFIG.format(name=name, short=short, rows=rows, dependencies=dependencies)
        (folder / "config.yaml").write_text(text.replace(f"{name}:", f"{short}:", 1))
        if script is not None:
            (folder / "prepare.py").write_text(script)
        return folder

    return written


@pytest.fixture
def prepare(capsys):
    """Run `gym eval prepare` in this process; return its exit code, and what it told."""

    def call(*names, options=()):
        flags = [text for name in names for text in ("--benchmark", name)]
        code = exit_code_of(["eval", "prepare", *flags, *options])
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "no prepare script at benchmarks/bad/prepare.py"),
        ("def prepare(:\n", "bad/prepare.py:1: no Python: invalid syntax"),
        ("rows = []\n", "bad/prepare.py: it defines no function `prepare`"),
        ("async def prepare():\n    return 1\n", "bad/prepare.py:1: prepare() is a coroutine"),
        ("def prepare(shade=1):\n    return shade\n", "its prepare() takes shade, and no colour"),
        ("def prepare(*, size, **more):\n    return size\n", "needs size: +prepare_script_args.size=VALUE"),
    ],
)
def test_no_script_runs_before_all_are_found_to_be_right(benchmark, prepare, tmp_path, script, said):
    benchmark("good")
    benchmark("bad", script)
    code, _, err = prepare("good", "bad", options=["+prepare_script_args.colour=red"])
    assert (code, (tmp_path / "cache").exists()) == (1, False)
    assert said in err


def test_a_prepare_that_comes_from_elsewhere_is_one_with_unknown_parameters(benchmark):
    folder = benchmark("kin", "import nemo_gym\nif True:\n    from benchmarks.good.prepare import prepare\n")
    script = read_script(str(folder / "prepare.py"))
    assert (script.takes, script.field_names, script.refused(["colour"])) == (None, True, "")


def test_packages_that_are_missing_are_told_with_what_to_type(benchmark, prepare):
    benchmark("needy", dependencies="[surely-missing>=2]")
    code, _, err = prepare("needy")
    assert code == 1
    assert "benchmarks/needy asks for surely-missing>=2" in err
    assert "pip install 'surely-missing>=2'" in err
    assert "--isolate" in err


def test_each_is_told_what_became_of_it_and_one_that_fails_keeps_no_other_from_being_prepared(
    benchmark, prepare, tmp_path
):
    benchmark("group/good")
    benchmark("lacking", "import surely_missing.part\n\n\ndef prepare():\n    return 1\n")
    benchmark("astray", WRITES.replace("return path", "return str(path) + 'x'"))
    benchmark("broken", "def prepare():\n    return 1 / 0\n", dependencies="[surely-missing]")
    kept = benchmark(
        "kept", "def prepare(colour):\n    raise SystemExit('it is there')\n", rows="benchmarks/kept/k.jsonl"
    )
    (kept / "k.jsonl").write_text('{"question": 1}\n{"question": 2}\n')
    python = tmp_path / "benchmarks" / "broken" / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\ntouch "{tmp_path}/ran-apart"\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    options = ["+use_cached_prepared_benchmarks=true", "+num_prepare_benchmark_processes=3", "--json"]
    isolated = ["--isolate", "++skip_venv_if_present=true"]
    code, out, _ = prepare("group/good", "astray", "broken", "kept", "lacking", options=[*options, *isolated])
    told = {one["name"]: one for one in json.loads(out)["benchmarks"]}
    good, rows = tmp_path / "cache" / "good.jsonl", {name: one["rows"] for name, one in told.items()}
    assert (code, good.read_text()) == (1, '{"question": "blue"}\n')
    assert told["good"] == {"name": "good", "jsonl_fpath": str(good), "rows": 1, "cached": False, "problem": None}
    assert (rows, told["kept"]["cached"]) == ({"good": 1, "astray": 0, "broken": 0, "kept": 2, "lacking": 0}, True)
    assert f"returns {tmp_path}/cache/astray.jsonlx, and a run reads" in told["astray"]["problem"]
    assert "broken/prepare.py ended with exit code 1; what it said is above" in told["broken"]["problem"]
    assert "needs the package 'surely_missing', which is not installed" in told["lacking"]["problem"]
    assert (tmp_path / "ran-apart").exists()


def test_a_configuration_without_a_benchmark_is_refused(benchmark, prepare):
    code, _, err = prepare()
    assert (code, "name what to prepare" in err) == (2, True)
    code, _, err = prepare(options=["--config", "resources_servers/mcqa/configs/mcqa.yaml"])
    assert (code, "no data set of type benchmark is declared" in err) == (1, True)


async def test_who_is_interrupted_leaves_no_half_file(benchmark, tmp_path):
    began = tmp_path / "began"
    os.mkfifo(began)
    script = f"""
import signal
from pathlib import Path
from rollbook.inputs.prepared_rows import whole_file

def prepare(jsonl_fpath):
    Path(jsonl_fpath).parent.mkdir()
    with whole_file(Path(jsonl_fpath)) as file:
        file.write(b'{{"question": ')
        Path({str(began)!r}).write_text("half of it is written")
        signal.pause()
"""
    folder = benchmark("slow", script)
    cfg = GlobalConfigDictParser().parse_no_environment({"config_paths": [str(folder / "config.yaml")]})
    working = asyncio.ensure_future(prepare_benchmarks([cfg], BenchmarkPreparation(), lambda _: None))
    assert await asyncio.to_thread(began.read_text) == "half of it is written"
    assert [path.name[:6] for path in (tmp_path / "cache").iterdir()] == [".slow."]
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert list((tmp_path / "cache").iterdir()) == []


@pytest.fixture
def unheard():
    """Make the signals that end a command raise where nobody hears them, and return where to look."""
    numbers = (signal.SIGTERM, signal.SIGHUP)

    def nobody(number, _frame):
        raise AssertionError(f"nobody heard {signal.Signals(number).name}")

    before = [signal.signal(number, nobody) for number in numbers]
    yield
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


@pytest.mark.usefixtures("unheard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_the_command_ends_its_scripts(benchmark, prepare, tmp_path, number):
    began = tmp_path / "began"
    os.mkfifo(began)
    benchmark("slow", SLOW.format(began=str(began)))
    pids = []

    def end():
        pids.append(int(began.read_text()))
        os.kill(os.getpid(), number)

    ending = threading.Thread(target=end)
    ending.start()
    code, _, err = prepare("slow")
    ending.join()
    assert (code, f"{number.name}: what is under way is ended" in err) == (128 + number, True)
    with pytest.raises(ProcessLookupError):
        os.kill(pids[0], 0)


async def test_a_script_does_not_outlive_who_no_longer_waits_for_its_end(benchmark, tmp_path):
    began = tmp_path / "began"
    os.mkfifo(began)
    deaf = SLOW.replace("    Path(", "    signal.signal(signal.SIGINT, signal.SIG_IGN)\n    Path(", 1)
    folder = benchmark("slow", deaf.format(began=str(began)))
    cfg = GlobalConfigDictParser().parse_no_environment({"config_paths": [str(folder / "config.yaml")]})
    working = asyncio.ensure_future(prepare_benchmarks([cfg], BenchmarkPreparation(), lambda _: None))
    pid = int(await asyncio.to_thread(began.read_text))
    watched = os.pidfd_open(pid)
    for _ in range(2):
        for task in asyncio.all_tasks() - {asyncio.current_task()}:
            task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await working
    assert await asyncio.to_thread(select.select, [watched], [], [], 4) == ([watched], [], [])
    os.close(watched)


def test_a_script_that_is_no_file_is_a_configuration_error(tmp_path):
    with pytest.raises(ConfigError, match="no prepare script at"):
        read_script(str(tmp_path))

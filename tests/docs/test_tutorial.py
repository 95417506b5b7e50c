"""docs/tutorial.md, done by the book: its files are written, its commands run, and what it promises is there."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.source_tree import REPOSITORY

TEXT = (REPOSITORY / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```(?P<language>\w+)(?: (?P<path>\S+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = [match.groupdict() for match in BLOCK.finditer(TEXT)]
COMMANDS = [block["text"] for block in BLOCKS if block["language"] == "bash"]
SECONDS = 120
BASH = shutil.which("bash") or "/bin/sh"


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": programs, "NEMO_GYM_EXTRA_ROOTS": "", "ROLLBOOK_EXTRA_ROOTS": ""}
    return subprocess.run(
        [BASH, "-euo", "pipefail", "-c", command],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("tutorial")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (here / "env.yaml").write_text(f"head_server: {{host: 127.0.0.1, port: {port}}}\n", encoding="utf-8")
    for block in BLOCKS:
        if block["path"]:
            file = here / block["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block["text"], encoding="utf-8")
    return here


@pytest.fixture(scope="module")
def first_run(folder):
    done = run(COMMANDS[0], folder)
    assert done.returncode == 0, done.stderr
    return done


def test_the_listing_of_files_is_what_the_blocks_hold():
    listed = TEXT.split("```\n", 2)[1].split()
    assert set(listed) == {block["path"] for block in BLOCKS if block["path"]}


def test_every_rollout_is_scored_and_saved(first_run, folder):
    lines = (folder / "results/capitals/rollouts.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert sorted((row["_ng_task_index"], row["_ng_rollout_index"]) for row in rows) == [
        (task, repeat) for task in range(3) for repeat in range(4)
    ]
    assert all(row["reward"] in {0.0, 1.0} and row["words"] >= 0 for row in rows)
    assert all(row["agent_ref"] == {"name": "capitals_second_look_agent"} for row in rows)


def test_the_agent_looks_twice(first_run, folder):
    first = (folder / "results/capitals/rollouts.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert sum(item["type"] == "message" for item in json.loads(first)["response"]["output"]) == 2


def test_the_run_says_which_rows_it_took_and_where_its_files_are(first_run):
    assert "Input: resources_servers/capitals/data/example.jsonl" in first_run.stderr
    assert "results/capitals/rollouts.jsonl" in first_run.stdout


def test_the_same_command_refuses_to_replace_the_run(first_run, folder):
    before = (folder / "results/capitals/rollouts.jsonl").read_bytes()
    again = run(COMMANDS[0], folder)
    assert again.returncode == 1
    assert "--overwrite" in again.stderr
    assert (folder / "results/capitals/rollouts.jsonl").read_bytes() == before


def test_the_commands_that_look_at_the_run_work(first_run, folder):
    looked = run(COMMANDS[1], folder)
    assert looked.returncode == 0, looked.stderr
    assert "mean/words" in looked.stdout


def test_servers_in_processes_of_their_own_give_the_same_rollouts(first_run, folder):
    command = COMMANDS[0].replace("results/capitals", "results/processes").rstrip() + " --serve processes"
    done = run(command, folder)
    assert done.returncode == 0, done.stderr
    rewards = [
        sorted(
            (row["_ng_task_index"], row["_ng_rollout_index"], row["reward"])
            for row in map(json.loads, (folder / name).read_text(encoding="utf-8").splitlines())
        )
        for name in ("results/capitals/rollouts.jsonl", "results/processes/rollouts.jsonl")
    ]
    assert rewards[0] == rewards[1]

"""A run in a folder of its own, driven through the command line in this process."""

import contextlib
import io
import json
from collections import Counter
from pathlib import Path

from aiohttp import web

from rollbook.cli.entry import exit_code_of
from stub import AGENT, ENVIRONMENT, adding, lines


class Answer:
    """What a command said, and its exit code."""

    def __init__(self, code, out, err):
        self.code, self.out, self.err = code, out, err

    @property
    def text(self):
        return self.out + self.err


class RunFolder:
    """One output with its companions; `sent` are the requests of the latest command, as (task, rollout, attempt)."""

    def __init__(self, root: Path):
        self.input = root / "in.jsonl"
        self.folder = root / "out"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.output = self.folder / "r.jsonl"
        self.results = self.output
        self.failures = self.folder / "r_failures.jsonl"
        self.plan = self.folder / "r_materialized_inputs.jsonl"
        self.manifest = self.folder / "r_manifest.json"
        self.log = self.folder / "r_manifest.log"
        self.sent = []

    def asks(self, rows):
        self.input.write_bytes(lines(rows))
        return self

    def run(self, stub, *flags):
        """Run the command; nothing is tried again within it, unless a flag says so."""
        answer = self.run_unread(stub, *flags)
        assert_sound(self.results, self.failures, self.plan, self.log)
        return answer

    def run_unread(self, stub, *flags):
        """Run the command, and leave its files unread."""
        before = len(stub.requests)
        named = ["-i", str(self.input), "-o", str(self.output), "--concurrency", "1", "--retry-for", "0"]
        answer = said(["eval", "run", "--no-serve", *named, *flags, *stub.overrides])
        self.sent = [identity(row) for row in stub.requests[before:]]
        return answer

    def resume(self, stub, *flags):
        return self.run(stub, "--resume", *flags)

    def status(self):
        answer = said(["eval", "status", str(self.output), "--json"])
        document = json.loads(answer.out)
        assert document["exit_code"] == answer.code
        (run,) = document["runs"]
        return run

    def told_manifest(self):
        return json.loads(self.manifest.read_bytes())


def said(command):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = exit_code_of(command)
    answer = Answer(code, out.getvalue(), err.getvalue())
    assert "Traceback" not in answer.text
    return answer


def identity(row):
    return row["_ng_task_index"], row["_ng_rollout_index"], row.get("_ng_attempt_index", 0)


def rows_of(path):
    return [json.loads(line) for line in path.read_bytes().split(b"\n") if line.strip()] if path.exists() else []


def identities(path):
    return [identity(row) for row in rows_of(path)]


def refuse_constant(name):
    raise ValueError(name)


def assert_sound(results, *others):
    """Every complete line is strict JSON, and no rollout has two results of one attempt."""
    for path in (results, *others):
        for line in path.read_bytes().split(b"\n")[:-1] if path.exists() else ():
            if line.strip():
                json.loads(line, parse_constant=refuse_constant)
    found = Counter(identity(row) for row in rows_of(results) if isinstance(row, dict)) if results.exists() else {}
    assert not [key for key, count in found.items() if count > 1]


def replies(script):
    """Turn a table (task, rollout, attempt) -> reply into a script; a reply of its own for a whole task is (task,)."""

    def answer(row):
        key = identity(row)
        made = script.get(key, script.get(key[:1]))
        return None if made is None else made(row)

    return answer


def status_reply(status, **headers):
    return lambda _row: web.Response(status=status, text="no", headers=headers)


def json_reply(**fields):
    return lambda row: web.json_response(row | fields)


SERVER_ERROR = status_reply(500)


def planned(task, **extra):
    """Return a line of a plan; the rows below are as NeMo Gym 0.7 writes them: none names its run."""
    row = {"responses_create_params": {"input": f"add {task} and {task}"}, "agent_ref": {"name": AGENT}}
    return row | {"_ng_task_index": task, "_ng_rollout_index": 0} | extra


def scored(task, reward=1.0, **extra):
    who = {"_ng_task_index": task, "_ng_rollout_index": 0, "agent_ref": {"name": AGENT}}
    return {"reward": reward, "response": {"output": []}} | who | {"_ng_environment_server": ENVIRONMENT} | extra


def failed(task, failure_class="agent_run_error", **extra):
    who = {"_ng_task_index": task, "_ng_rollout_index": 0, "agent_ref": {"name": AGENT}}
    return {"_ng_failure_class": failure_class} | who | {"_ng_environment_server": ENVIRONMENT} | extra


def omitted(task, failure_class="kill_shaped", **extra):
    return failed(task, failure_class, _ng_no_persist=True, _ng_omitted_rollout=True, **extra)


def built(root, tasks, results=(), failures=()):
    """Return a folder as a collector without a manifest leaves it."""
    folder = RunFolder(root).asks(adding(tasks))
    folder.plan.write_bytes(lines([planned(task) for task in range(tasks)]))
    folder.results.write_bytes(lines(results))
    folder.failures.write_bytes(lines(failures))
    return folder

"""One run in a folder of its own, played through the command line, and the rules that hold after every command.

Rules:
* After each command: no traceback was printed, every complete line on disk passes a strict parser, what the counts say
  adds up, and nothing that had a result was asked for again.
"""

import contextlib
import io
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from aiohttp import web

from cases.started import LONGEST_S, Ended, Started
from rollbook.cli.entry import exit_code_of
from stub import Script, Stub, lines

Key = tuple[int, int]
RESULTS, FAILURES, PLAN = "r.jsonl", "r_failures.jsonl", "r_materialized_inputs.jsonl"
MANIFEST, LOG, LOCK, METRICS = "r_manifest.json", "r_manifest.log", ".r.lock", "r_aggregate_metrics.json"
BATCH = "r_batch_status.json"


class Said(NamedTuple):
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything that it printed, white space folded, so that no line break hides a sentence."""
        return re.sub(r"\s+", " ", self.out + self.err)


class Played:
    """The run at `<folder>/out/r.jsonl`, against one stub."""

    def __init__(self, folder: Path, stub: Stub, rows: list[dict] | bytes) -> None:
        self.stub = stub
        self.input, self.folder = folder / "in.jsonl", folder / "out"
        self.folder.mkdir()
        self.input.write_bytes(rows if isinstance(rows, bytes) else lines(rows))

    @property
    def output(self) -> Path:
        return self.folder / RESULTS

    def words(self, *flags: str) -> list[str]:
        """Return the command line of a run."""
        always = ["eval", "run", "--no-serve", "--retry-for", "0", "-i", str(self.input), "-o", str(self.output)]
        return [*always, *flags, *self.stub.overrides]

    def started(self, *flags: str, first: Callable[[], None] | None = None, longest: float = LONGEST_S) -> Started:
        """Run in a process of its own, which does `first` before anything else, and is killed after `longest` s."""
        return Started(self.words(*flags), first, longest)

    def struck(self, number: int, request: int, *flags: str) -> Ended:
        """Run in a process that gets a signal when its n-th request arrives; answer what it asked then at once."""
        strike = self.stub.script = _Strike(number, request)
        started = self.started(*flags)
        strike.pid.set_result(started.pid)
        return started.ended()

    def run(self, *flags: str) -> Said:
        """Run in this process."""
        before, asked = self.scored(), len(self.stub.requests)
        said = called(self.words(*flags))
        self.holds(said, before if "--resume" in flags else set(), asked)
        return said

    def resume(self, *flags: str) -> Said:
        """Go on in this process."""
        return self.run("--resume", *flags)

    def status(self, *flags: str) -> tuple[int, dict]:
        """Return the exit code of `gym eval status` and what it says of the run."""
        before = self.files()
        said = called(["eval", "status", "--json", str(self.output), *flags])
        assert self.files() == before
        document = json.loads(said.out, parse_constant=refused)
        assert document["exit_code"] == said.code
        told = document["runs"][0]
        owed_and_not = sum(told["owed_by"].values()) + sum(told["not_owed_by"].values()) + told["in_flight"]
        assert owed_and_not == told["inputs"] or not told["law_holds"]
        return said.code, told

    def holds(self, said: Said, before: set[Key], asked: int) -> None:
        """Assert what holds after every command, `before` being what had a reward and `asked` the requests then."""
        assert "Traceback" not in said.out + said.err
        assert "defect of ours" not in said.text, said.text
        for name in (RESULTS, FAILURES, PLAN, LOG):
            self.rows(name)
        assert before <= self.scored()
        assert not before & {key_of(row) for row in self.stub.requests[asked:]}

    def rows(self, name: str) -> list[dict]:
        """Return the complete lines of a file, each strictly parsed."""
        path = self.folder / name
        complete = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
        return [strict(line) for line in complete]

    def scored(self) -> set[Key]:
        """Return what has a reward on disk."""
        path = self.output
        read = path.read_bytes().split(b"\n") if path.exists() else []
        return {key_of(row) for line in read if (row := whole(line)) and row.get("reward") is not None}

    def asked(self, since: int = 0) -> list[Key]:
        """Return what was asked for, in order."""
        return [key_of(row) for row in self.stub.requests[since:]]

    def times(self) -> Counter[Key]:
        """Return how often each rollout was asked for."""
        return Counter(self.asked())

    def files(self) -> dict[str, bytes]:
        """Return every file of the folder."""
        return {path.name: path.read_bytes() for path in self.folder.iterdir() if path.is_file()}

    def untouched_but(self, before: dict[str, bytes], names: set[str]) -> bool:
        """Whether what was not empty before is as it was, apart from `names`."""
        after = self.files()
        return all(after.get(name) == data for name, data in before.items() if name not in names and data)

    def put(self, name: str, data: bytes) -> None:
        """Write a file."""
        (self.folder / name).write_bytes(data)

    def bytes_of(self, name: str) -> bytes:
        """Return a file."""
        return (self.folder / name).read_bytes()

    def as_if_killed(self, name: str, size: int) -> None:
        """Leave what there was when a file had this size: the log held no line yet that claims more bytes."""
        self.put(name, self.bytes_of(name)[:size])
        held = [self.bytes_of(name) if (self.folder / name).exists() else b"" for name in (RESULTS, FAILURES)]
        kept = []
        for line in self.bytes_of(LOG).splitlines(keepends=True):
            claimed = strict(line).get("sizes", [0, 0])
            if any(claim > len(data) for claim, data in zip(claimed, held, strict=True)):
                break
            kept.append(line)
        self.put(LOG, b"".join(kept))

    def without_manifest(self) -> None:
        """Leave what another program of the field leaves: results, failures and plan alone, rows that name no run."""
        for name in (MANIFEST, LOG, LOCK, METRICS, BATCH):
            (self.folder / name).unlink(missing_ok=True)
        for name in (RESULTS, FAILURES):
            if (self.folder / name).exists():
                self.put(name, lines_as_they_are([without(row, ("_ng_run_id",)) for row in self.rows(name)]))


def prompt_of(row: dict) -> str:
    """Return what a row asks."""
    return row["responses_create_params"]["input"]


def answering(text: str, reward: float = 1.0) -> Script:
    """Answer everything with this text."""
    return lambda row: web.json_response(row | {"reward": reward, "response": {"output": []}, "text": text})


def failing(*tasks: int, **more: object) -> Script:
    """Fail these tasks each time, and answer the rest."""
    failure = {"_ng_failure_class": "agent_run_error", "_ng_failure_message": "no", **more}
    return lambda row: web.json_response(failure) if row["_ng_task_index"] in tasks else None


class _Strike:
    """A script that answers everything, and sends a signal when a request arrives."""

    def __init__(self, number: int, request: int) -> None:
        self.number, self.left = number, request
        self.pid: Future[int] = Future()

    def __call__(self, _row: dict) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(self.pid.result(timeout=60), self.number)


def called(words: Iterable[str]) -> Said:
    """Call the command line in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = exit_code_of(list(words))
    said = Said(code, out.getvalue(), err.getvalue())
    assert "Traceback" not in said.out + said.err
    return said


def refused(word: str) -> None:
    """Refuse what JSON does not have."""
    raise ValueError(word)


def strict(line: bytes) -> dict:
    """Parse a line as JSON, whole and without what JSON does not have."""
    row = json.loads(line.decode("utf-8"), parse_constant=refused)
    assert isinstance(row, dict)
    return row


def whole(line: bytes) -> dict | None:
    """Return a row if the line is whole."""
    try:
        return strict(line)
    except ValueError:
        return None


def without(row: dict, keys: Iterable[str]) -> dict:
    """Return the row without some keys."""
    return {key: value for key, value in row.items() if key not in keys}


def key_of(row: dict) -> Key:
    """Return which rollout a row is about."""
    return row["_ng_task_index"], row["_ng_rollout_index"]


def lines_as_they_are(rows: Iterable[dict]) -> bytes:
    """Return rows as JSON Lines with every character as it is."""
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()


def ends(data: bytes) -> list[int]:
    """Return where each line of a file ends, newline included."""
    return [index + 1 for index, byte in enumerate(data) if byte == ord("\n")]

"""A run of the engine over rows that meet faults, and what it left on disk."""

import asyncio
import json
from pathlib import Path

from omegaconf import OmegaConf

from faults.left_open import nothing_left_open
from faults.raw_server import SCRIPTED, RawServer
from faults.table import MOST_BYTES, Fault
from rollbook.api.evaluation import evaluate
from rollbook.api.request import EvaluationRequest, EvaluationResult, ServeMode
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.errors import RunError
from stub import AGENT, lines

_HUNG_SECONDS = 40.0


def row(name: str, server: str = SCRIPTED) -> dict:
    """Return a row that meets the fault `name`."""
    named = {"agent_ref": {"name": AGENT}, "_ng_environment_server": server, "id": name, "fault": name}
    return {"responses_create_params": {"input": name}} | named


def row_of(fault: Fault) -> dict:
    return row(fault.name, fault.server)


class Collected:
    """The run in `folder`: `result` or `error`, and its lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.result: EvaluationResult | None = None
        self.error: RunError | None = None

    def lines(self, name: str) -> list[bytes]:
        """Return the lines of a file, each without its newline; none where it is not there."""
        path = self.folder / "out" / name
        text = path.read_bytes() if path.exists() else b""
        assert not text or text.endswith(b"\n")
        return text.split(b"\n")[:-1]

    @property
    def results(self) -> list[dict]:
        return [strictly(line) for line in self.lines("r.jsonl")]

    @property
    def failures(self) -> list[dict]:
        return [strictly(line) for line in self.lines("r_failures.jsonl")]


async def collected(server: RawServer, folder: Path, rows: list[dict], **settings: object) -> Collected:
    """Run `rows` against `server`, nothing tried again, and check that the run leaves nothing open."""
    source, run = _written(folder, rows), Collected(folder)
    common = {
        "retry_for_s": 0,
        "dispatch_connect_grace_s": 0.005,
        "max_reply_bytes": MOST_BYTES,
        "disable_aggregation": True,
        "durability": "off",
        "environment_protocol_violation_stop_after": 0,
    }
    config = RolloutCollectionConfig(
        input_jsonl_fpath=str(source), output_jsonl_fpath=str(folder / "out" / "r.jsonl"), **common | settings
    )
    deployment = OmegaConf.create({"head_server": server.head.model_dump()})
    server.forget()
    with nothing_left_open(server):
        try:
            async with asyncio.timeout(_HUNG_SECONDS):
                run.result = await evaluate(EvaluationRequest(config, deployment, ServeMode.NONE))
        except RunError as error:
            run.error = error
    return run


def _written(folder: Path, rows: list[dict]) -> Path:
    source = folder / "in.jsonl"
    source.write_bytes(lines(rows))
    return source


def strictly(line: bytes) -> dict:
    """Return what a line says; a key that is there twice, NaN and a lone surrogate are errors."""
    assert b"\r" not in line
    read = json.loads(line.decode(), object_pairs_hook=_once, parse_constant=_refused)
    json.dumps(read, ensure_ascii=False, allow_nan=False).encode()
    return read


def _once(pairs: list[tuple[str, object]]) -> dict:
    assert len(dict(pairs)) == len(pairs), f"twice: {[key for key, _ in pairs]}"
    return dict(pairs)


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")

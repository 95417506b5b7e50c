"""A small run in this process, against a script instead of a network.

Rules:
* `run_once` is one session; what it is given decides everything, and it waits for nothing real.
"""

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from omegaconf import DictConfig, OmegaConf

from crash.claims import RESULTS, Attempt, attempt_of
from crash.script import Fault, answer_of, refusal_of
from rollbook.api import evaluation
from rollbook.api.request import EvaluationRequest, EvaluationResult, ServeMode
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.config.types import BaseServerConfig
from rollbook.records.exchange import Reply, SendFailed, Upload
from rollbook.records.failure_kinds import Delivery
from stub import AGENT, ENVIRONMENT

TASKS: Final = 3
REPEATS: Final = 2
KEYS: Final = {(task, rollout) for task in range(TASKS) for rollout in range(REPEATS)}
LANES: Final = 2
Say = Callable[[object], None]

PLANNED: Final[Mapping[Attempt, Fault]] = {
    (0, 1, 0): Fault.ERROR,
    (1, 0, 0): Fault.REFUSED,
    (1, 1, 0): Fault.UNAVAILABLE,
    (2, 0, 0): Fault.NO_JSON,
    (2, 0, 1): Fault.DROPPED,
}
"""A failure, an interruption, a retry, a failure twice; everything else is scored."""


class QuickClock:
    """Time that passes as fast as it is waited for."""

    def __init__(self) -> None:
        self._at = 1_000_000.0

    def monotonic(self) -> float:
        return self._at

    def now(self) -> float:
        return self._at

    async def sleep(self, seconds: float) -> None:
        self._at += max(seconds, 0.0)
        await asyncio.sleep(0)


class Script:
    """A deployment without servers: it answers by the plan above, and says what it was sent before it answers."""

    def __init__(self, say: Say) -> None:
        self.say = say
        self.head_server_config = BaseServerConfig(host="127.0.0.1", port=1)
        here = {"entrypoint": "app.py", "host": "127.0.0.1", "port": 1}
        agent = {"type": "responses_api_agents", "name": AGENT}
        self.global_config_dict: DictConfig = OmegaConf.create(
            {
                "head_server": {"host": "127.0.0.1", "port": 1},
                AGENT: {"responses_api_agents": {"simple_agent": here}},
                ENVIRONMENT: {"environment_servers": {"legacy_agent": here | {"agent_server": agent}}},
            }
        )

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def send(self, server: str, path: str, body: bytes | Upload, exchange: object = None) -> Reply:
        said = json.loads(body if isinstance(body, bytes) else b"".join(body.pieces()))
        if path != "/run":
            return Reply(200, json.dumps(_metrics(said)).encode())
        attempt = attempt_of(said)
        self.say(attempt)
        await asyncio.sleep(0)
        return _reply(said, PLANNED.get(attempt, Fault.NONE))


def _metrics(said: dict) -> dict:
    rewards = [row["reward"] for row in said["verify_responses"] if "reward" in row]
    metrics = {"mean/reward": sum(rewards) / len(rewards) if rewards else 0.0}
    return {"agent_metrics": metrics, "key_metrics": metrics, "group_level_metrics": [], "repeat_level_metrics": []}


def _reply(row: dict, fault: Fault) -> Reply:
    match fault:
        case Fault.NONE:
            return Reply(200, json.dumps(answer_of(row) | {"response": {"output": []}}).encode())
        case Fault.REFUSED:
            return Reply(200, json.dumps(refusal_of(row)).encode())
        case Fault.NO_JSON:
            return Reply(200, b'{"reward": 1.')
        case Fault.UNAVAILABLE | Fault.TOO_MANY | Fault.ERROR:
            return Reply(int(fault.value), b"planned", {"retry-after": "0"})
        case _:
            raise SendFailed("gone", delivery=Delivery.POSSIBLY_DELIVERED, exception_type="ServerDisconnectedError")


@contextmanager
def answered_by(script: Script) -> Iterator[None]:
    """Let evaluations in this block be answered by `script`."""
    original = evaluation.deployment_for
    evaluation.deployment_for = lambda _request: script
    try:
        yield
    finally:
        evaluation.deployment_for = original


def run_once(base: Path, script: Script, *, resume: bool) -> EvaluationResult:
    """Carry out one session of the run in `base`; raise what it raises."""
    source = base / "in.jsonl"
    if not source.exists():
        base.mkdir(parents=True, exist_ok=True)
        rows = [{"responses_create_params": {"input": str(n)}, "agent_ref": {"name": AGENT}} for n in range(TASKS)]
        source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    settings: dict[str, Any] = {
        "input_jsonl_fpath": str(source),
        "output_jsonl_fpath": str(base / "out" / RESULTS),
        "num_repeats": REPEATS,
        "num_samples_in_parallel": LANES,
        "route_failures_to_sidecar": True,
        "resume_from_cache": resume,
    }
    request = EvaluationRequest(RolloutCollectionConfig(**settings), script.global_config_dict, ServeMode.NONE)
    with answered_by(script):
        return asyncio.run(evaluation.evaluate(request, QuickClock()))

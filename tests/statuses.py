"""Runs as a status tells them, for the tests of what is shown and of what a command ends with."""

from pathlib import Path

from rollbook.records.run_status import (
    Damage,
    GroupStatus,
    RunState,
    RunStatus,
    SessionStatus,
    not_owed_by,
    owed_by,
)
from rollbook.records.standing import Coverage

OUTPUT = Path("out/rollouts.jsonl")
SIX = Coverage(
    planned=6,
    scored=2,
    failed=3,
    untouched=1,
    failed_by_class={"agent_run_error": 2, "skipped": 1},
    retryable=1,
    settled=1,
    exhausted=1,
)
DONE = Coverage(planned=3, scored=3)
SESSIONS = (
    SessionStatus(
        1,
        "2026-09-20T10:00:00Z",
        "2026-09-20T10:05:00Z",
        "interrupted: SIGTERM",
        "node7",
        41,
        "gym eval run -i a.jsonl",
    ),
    SessionStatus(2, "2026-09-20T11:00:00Z", None, None, "node8", 42, "gym eval run -i a.jsonl --resume"),
)


def run_of_six(**given):
    """Two succeeded, one failed for good, one at the cap, one failed once, one untouched: case RC-21."""
    coverage = given.get("coverage", SIX)
    values = {
        "output": OUTPUT,
        "state": RunState.INTERRUPTED,
        "run_id": "5f1c",
        "managed": True,
        "coverage": coverage,
        "groups": (GroupStatus("math_agent", "math_env", SIX, 0.5, {"agent_timeout": 3}),),
        "sessions": SESSIONS,
        "attempts": 8,
        "refused": 1,
        "cap": 3,
        "owed_by": owed_by(coverage),
        "not_owed_by": not_owed_by(coverage),
        "damage": (),
        "started_at": "2026-09-20T10:00:00Z",
        "elapsed_s": 725.4,
        "tokens": {"input_tokens": 40, "output_tokens": 20},
        "notes": ("the sidecar ends in half a row",),
    }
    return RunStatus(**{**values, **given})


def finished(**given):
    """Every planned rollout is scored."""
    return run_of_six(**{"state": RunState.FINISHED, "coverage": DONE, "groups": (), "notes": (), **given})


def damaged(places=1, **given):
    """Lines that are no records."""
    damage = tuple(Damage(f"{OUTPUT}:{line}", "is no JSON object") for line in range(1, places + 1))
    return run_of_six(**{"state": RunState.DAMAGED, "damage": damage, **given})

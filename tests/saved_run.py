"""The files of a run, written line by line as a test says it, in the order in which a run writes them."""

import json

from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.records.manifest import PlanDigest, RunManifest, SessionEntry


class SavedRun:
    """A run `r1` under `folder`; `manifest` is what its file says once it is written."""

    def __init__(self, folder, rollouts, *, managed=True, **settings):
        self.paths = RunPaths(folder / "r.jsonl")
        self.output = self.paths.output
        folder.mkdir(parents=True, exist_ok=True)
        self.output.touch()
        self.paths.failures.touch()
        self.paths.materialized_inputs.touch()
        for row in rollouts:
            append(self.paths.materialized_inputs, row)
        plan = PlanDigest(sha256="0" * 64, bytes=self.paths.materialized_inputs.stat().st_size, rollouts=len(rollouts))
        session = SessionEntry(number=1, opened_at="", host="", pid=1, version="")
        self.manifest = RunManifest(
            **{"run_id": "r1", "created_at": "", "plan": plan, "sessions": (session,)} | settings
        )
        if managed:
            write_manifest(self.paths.manifest, self.manifest)
            self.opens()

    def opens(self):
        self.log(t="open", session=1, run_id="r1", at="", sizes=self.sizes())

    def sizes(self):
        return [self.output.stat().st_size, self.paths.failures.stat().st_size]

    def log(self, **event):
        append(self.paths.manifest_log, event)

    def reserves(self, *attempts):
        self.log(t="reserve", a=[number for attempt in attempts for number in attempt], sizes=self.sizes())
        return self

    def result(self, task, rollout, attempt=0, **fields):
        append(self.output, stamped(task, rollout, attempt, {"reward": 1.0} | fields))
        return self

    def failure(self, task, rollout, attempt=0, **fields):
        append(self.paths.failures, stamped(task, rollout, attempt, failed() | fields))
        return self

    def ran(self, task, rollout, attempt=0, **fields):
        return self.reserves((task, rollout, attempt)).result(task, rollout, attempt, **fields)

    def failed(self, task, rollout, attempt=0, **fields):
        return self.reserves((task, rollout, attempt)).failure(task, rollout, attempt, **fields)


def planned(task, rollout, **fields):
    return {"_ng_task_index": task, "_ng_rollout_index": rollout, "agent_ref": {"name": "a"}} | fields


def failed(failure_class="agent_run_error"):
    return {"_ng_failure_class": failure_class, "_ng_failure_message": "no", "_ng_failure_delivery": "delivered"}


def killed(**fields):
    return {"_ng_failure_class": "kill_shaped", "_ng_no_persist": True, "_ng_failure_delivery": None} | fields


def stamped(task, rollout, attempt, fields):
    """Return a row of run r1; a field that is None is left out, `_ng_run_id` too."""
    row = planned(task, rollout) | {"_ng_run_id": "r1"} | ({"_ng_attempt_index": attempt} if attempt else {}) | fields
    return {key: value for key, value in row.items() if value is not None}


def append(path, row):
    with path.open("ab") as file:
        file.write(json.dumps(row).encode() + b"\n")


UNMANAGED = {"_ng_run_id": None}

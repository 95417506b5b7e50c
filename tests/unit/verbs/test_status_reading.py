"""How a run is read that changes while it is read."""

from rollbook.ledger.digests import sha256_of
from rollbook.ledger.manifest_store import write_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.records.manifest import Closed, Opened, PlanDigest, RunManifest, log_line
from rollbook.records.run_status import RunState
from rollbook.verbs import status


def test_a_run_that_ends_while_it_is_read_is_read_once_more(tmp_path, monkeypatch):
    paths = RunPaths(tmp_path / "r.jsonl")
    paths.manifest_log.write_bytes(log_line(Opened(1, "r", "2026-01-01T00:00:00Z", (0, 0))))
    paths.materialized_inputs.touch()
    plan = PlanDigest(sha256=sha256_of(paths.materialized_inputs), bytes=0, rollouts=0)
    write_manifest(paths.manifest, RunManifest(run_id="r", created_at="", plan=plan))
    held = iter([True, False, False])

    def ends(_paths):
        alive = next(held)
        if not alive:
            with paths.manifest_log.open("ab") as log:
                log.write(log_line(Closed("finished", "2026-01-01T00:00:01Z", (0, 0))))
        return alive

    monkeypatch.setattr(status, "_is_held", ends)
    told = status.run_status(paths.output)
    assert told.state is RunState.FINISHED
    assert told.sessions[0].how == "finished"

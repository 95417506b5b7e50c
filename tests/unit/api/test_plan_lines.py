"""The plan's rollouts that are owed, and the pauses between them."""

from types import SimpleNamespace

from rollbook.api.session import PlanLines
from rollbook.ledger.paths import RunPaths
from rollbook.plan.rollouts import Destination
from rollbook.records.disposition import Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Scored
from rollbook.records.record import Record
from rollbook.records.standing import Standings

LINE = b'{"_ng_task_index":%d,"_ng_rollout_index":0}\n'


def session_of(paths, standings):
    return SimpleNamespace(
        standings=standings,
        rules=Rules(),
        run=SimpleNamespace(paths=paths),
        manifest=SimpleNamespace(plan=SimpleNamespace(bytes=paths.materialized_inputs.stat().st_size)),
        directory=SimpleNamespace(find=lambda _agent, _server: Destination("s")),
    )


def test_a_huge_row_is_sent_as_it_stands(tmp_path):
    paths, standings = RunPaths(tmp_path / "r.jsonl"), Standings()
    huge = (LINE % 1)[:-2] + b',"responses_create_params":{"input":"%s"}}' % (b"z" * (9 << 20))
    paths.materialized_inputs.write_bytes(b"\xef\xbb\xbf" + LINE % 0 + huge + b" \n" + LINE % 2)
    for task in range(3):
        standings.plan(RolloutKey(task, 0))
    sent = [rollout.line for rollout in PlanLines(session_of(paths, standings))]
    assert sent == [(LINE % 0).strip(), huge, (LINE % 2).strip()]


def test_a_long_stretch_of_settled_rollouts_is_passed_in_pauses(tmp_path):
    paths, standings = RunPaths(tmp_path / "r.jsonl"), Standings()
    paths.materialized_inputs.write_bytes(b"".join(LINE % task for task in range(5001)))
    for task in range(5001):
        standings.plan(RolloutKey(task, 0))
    for task in range(5000):
        standings.add(Record(RolloutKey(task, 0), 0, Scored(1.0), None))
    passed = list(PlanLines(session_of(paths, standings)))
    assert passed[:-1] == [None] * 5
    assert passed[-1].key == RolloutKey(5000, 0)

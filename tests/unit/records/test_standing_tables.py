"""What a rollout's rows mean together: collection.md §4.11, §17.1, §21.1, V11, and the rules by their names."""

import pytest

from rollbook.records.codec import encode, is_non_superseding_rollout_row, is_omitted_rollout_row
from rollbook.records.disposition import OWED, Disposition, Rules
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Evidence, Failed, Interrupted, NeverStarted, Result, Scored
from rollbook.records.place import File
from rollbook.records.reading import read_row
from rollbook.records.standing import Standings

KEY = RolloutKey(0, 0)
OMITTED = {"_ng_no_persist": True, "_ng_omitted_rollout": True}
JUDGE = {"_ng_failure_class": "judge_failed"}
RUN_ERROR = {"_ng_failure_class": "agent_run_error"}
KILLED = OMITTED | {"_ng_failure_class": "kill_shaped"}
DRAINED = OMITTED | {"_ng_failure_class": "cancelled", "_ng_dispatch_drained": True}
UNROUTED = OMITTED | {"_ng_failure_class": "agent_run_error", "_ng_unrouted_run_error": True}
NO_PERSIST_ONLY = {"_ng_no_persist": True, "_ng_failure_class": "judge_failed"}


def folded(*rows, run_id=None, results=()):
    """Fold failures rows, then results, as their files are read; of a managed run, each number was handed out."""
    standings = Standings()
    standings.plan(KEY)
    for file, row in [*((File.FAILURES, row) for row in rows), *((File.RESULTS, row) for row in results)]:
        who = {"_ng_task_index": 0, "_ng_rollout_index": 0} | ({"_ng_run_id": run_id} if run_id else {})
        record = read_row(encode(who | row), file)
        if run_id and not isinstance(record.outcome, NeverStarted):
            standings.reserved(KEY, record.attempt, 1)
        standings.add(record)
    return standings


def attempt(row, number):
    return row | {"_ng_attempt_index": number}


@pytest.mark.parametrize("run_id", [None, "r"])
@pytest.mark.parametrize(
    ("rows", "stands", "spent"),
    [
        pytest.param([JUDGE, attempt(KILLED, 1)], Interrupted, 1, id="V11: a judge failure, then interrupted: missing"),
        pytest.param([JUDGE, DRAINED], Failed, 1, id="V11: a judge failure, then never started: it still stands"),
        pytest.param([JUDGE, attempt(UNROUTED, 1)], Failed, 1, id="V11: a judge failure, then evidence: it stands"),
        pytest.param([NO_PERSIST_ONLY], Failed, 1, id="V11: only no-persist and a class: a failure"),
        pytest.param([KILLED], Interrupted, 0, id="killed"),
        pytest.param([OMITTED], Interrupted, 0, id="killed, with no class or reason"),
        pytest.param([OMITTED | {"_ng_failure_class": "own"}], Interrupted, 0, id="no result under another class"),
        pytest.param([DRAINED], NeverStarted, 0, id="budget exhausted"),
        pytest.param([DRAINED | {"error_message": "margin"}], NeverStarted, 0, id="below the drain margin"),
        pytest.param([KILLED, attempt(RUN_ERROR, 1)], Failed, 1, id="interrupted, then a failure: the failure"),
        pytest.param([RUN_ERROR, attempt(KILLED, 1), DRAINED], Interrupted, 1, id="the omission before a drain stands"),
        pytest.param([UNROUTED], Evidence, 0, id="evidence alone"),
        pytest.param([DRAINED, RUN_ERROR], Failed, 1, id="never started, then a failure"),
    ],
)
def test_the_latest_execution_stands_in_folders_with_and_without_a_run_id(rows, stands, spent, run_id):
    standings = folded(*rows, run_id=run_id)
    assert isinstance(standings.of(KEY).outcome, stands)
    assert standings.spent(KEY) == spent


def test_five_terminal_copies_of_an_omitted_row_do_not_retire_a_rollout():
    standings = folded(*[KILLED | {"_ng_failure_terminal": True}] * 5)
    assert standings.standing(KEY).disposition in OWED
    assert standings.spent(KEY) == 0
    assert standings.next_attempt(KEY) == 0


def test_an_omitted_row_stays_behind_a_later_success():
    standings = folded(KILLED, results=[{"reward": 1.0}])
    assert standings.of(KEY).outcome == Scored(1.0)
    assert len(standings.records_of(KEY)) == 2


@pytest.mark.parametrize(
    ("run_id", "failure", "success", "wins"),
    [
        pytest.param("r", 1, 0, False, id="managed: a late result of an older attempt does not supersede"),
        pytest.param("r", 1, 1, True, id="managed: of the same attempt, success wins"),
        pytest.param("r", 0, 1, True, id="managed: the highest attempt is the success"),
        pytest.param(None, 1, 0, True, id="rows without a run id: success wins over a later failure"),
        pytest.param(None, 0, 0, True, id="rows without a run id: success wins, unstamped"),
    ],
)
def test_success_wins_where_no_later_attempt_of_a_run_ended(run_id, failure, success, wins):
    rows, results = [attempt(RUN_ERROR, failure)], [attempt({"reward": 1.0}, success)]
    assert isinstance(folded(*rows, run_id=run_id, results=results).of(KEY).outcome, Result) is wins


@pytest.mark.parametrize(
    ("row", "omitted", "superseding"),
    [
        pytest.param(JUDGE, False, True, id="a failure"),
        pytest.param(KILLED, True, True, id="interrupted"),
        pytest.param(DRAINED, True, False, id="never started"),
        pytest.param(UNROUTED, True, False, id="evidence"),
        pytest.param(NO_PERSIST_ONLY, False, True, id="no-persist alone"),
        pytest.param({"_ng_dispatch_drained": True}, False, True, id="drained, and not omitted"),
    ],
)
def test_the_predicates_tell_omitted_and_superseding_rows(row, omitted, superseding):
    assert is_omitted_rollout_row(row) is omitted
    assert is_non_superseding_rollout_row(row) is not superseding


SAVED_KILL = {"_ng_failure_class": "kill_shaped", "_ng_no_persist": True}
TERMINAL = RUN_ERROR | {"_ng_failure_terminal": True}
ANSWERED = RUN_ERROR | {"deliverables_dir": "d"}
THREE = [attempt(RUN_ERROR, number) for number in range(3)]


@pytest.mark.parametrize(
    ("rows", "results", "disposition"),
    [
        pytest.param([], [], Disposition.UNTOUCHED, id="missing"),
        pytest.param([], [{"reward": 1.0}], Disposition.SCORED, id="success: completed"),
        pytest.param([], [{}], Disposition.UNSCORED, id="a result without a reward: completed"),
        pytest.param([], [{"reward": 1.0, "mask_sample": True}], Disposition.MASKED, id="masked: completed"),
        pytest.param([RUN_ERROR], [], Disposition.RETRYABLE, id="failure under the cap: retryable"),
        pytest.param(THREE, [], Disposition.EXHAUSTED, id="failures up to the cap: exhausted"),
        pytest.param([TERMINAL], [], Disposition.SETTLED, id="terminal failure: terminal"),
        pytest.param([JUDGE], [], Disposition.HELD, id="judge failure: stopped"),
        pytest.param([ANSWERED], [], Disposition.HELD, id="kept answer: stopped"),
        pytest.param(
            [SAVED_KILL | {"_ng_failure_delivery": "not_sent"}], [], Disposition.INTERRUPTED, id="never sent: missing"
        ),
        pytest.param(
            [SAVED_KILL | {"_ng_failure_stage": "admission"}], [], Disposition.INTERRUPTED, id="refused: missing"
        ),
        pytest.param([SAVED_KILL], [], Disposition.HELD_INTERRUPTED, id="interrupted, cause unknown: blocked"),
        pytest.param([DRAINED], [], Disposition.NEVER_STARTED, id="not dispatched: missing"),
    ],
)
def test_each_edge_of_a_managed_rollout_leads_where_the_state_machine_says(rows, results, disposition):
    assert folded(*rows, run_id="r", results=results).standing(KEY, Rules(cap=3)).disposition is disposition


@pytest.mark.parametrize(
    ("live", "cut", "disposition"),
    [
        pytest.param(2, False, Disposition.IN_FLIGHT, id="its session lives"),
        pytest.param(2, True, Disposition.INTERRUPTED, id="its session cut it"),
        pytest.param(3, False, Disposition.INTERRUPTED, id="another session lives"),
        pytest.param(None, False, Disposition.INTERRUPTED, id="nobody lives"),
    ],
)
def test_an_attempt_without_an_ending_is_in_flight_while_its_session_lives(live, cut, disposition):
    standings = folded(RUN_ERROR, run_id="r")
    standings.reserved(KEY, 1, session=2)
    if cut:
        standings.cut(KEY, 1)
    assert standings.standing(KEY, Rules(live_session=live)).disposition is disposition


def test_what_was_lost_earlier_is_not_in_flight_because_a_later_number_was_refused():
    standings = folded()
    standings.reserved(KEY, 0, session=1)
    standings.reserved(KEY, 1, session=2)
    standings.refused(KEY, 1)
    assert standings.standing(KEY, Rules(live_session=2)).disposition is Disposition.INTERRUPTED


def test_an_open_attempt_never_hides_a_result():
    standings = folded(run_id="r", results=[{"reward": 1.0}])
    standings.reserved(KEY, 1, session=1)
    assert standings.standing(KEY).disposition is Disposition.SCORED


def test_what_was_not_sent_before_a_stop_was_never_started():
    standings = folded()
    standings.stopped("SIGTERM")
    assert standings.standing(KEY).disposition is Disposition.NEVER_STARTED
    assert standings.standing(KEY, Rules(live_session=1)).disposition is Disposition.UNTOUCHED

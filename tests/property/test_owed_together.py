"""Tasks whose repeats are scored together, whatever happened to them: every answer about what is owed is the same."""

from hypothesis import given
from hypothesis import strategies as st

from rollbook.records.columns import packed
from rollbook.records.disposition import OWED, Disposition, Rules
from rollbook.records.failure_kinds import JUDGE_FAILED
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Interrupted, Masked, Scored
from rollbook.records.record import Record
from rollbook.records.run_status import not_owed_by, owed_by
from rollbook.records.standing import Standings

OUTCOMES = [
    Scored(1.0),
    Masked(0.5),
    Failed("agent_run_error"),
    Failed("skipped", terminal=True),
    Failed(JUDGE_FAILED),
    Interrupted("kill_shaped"),
    None,
]
TASKS, REPEATS = 3, 3
KEYS = [RolloutKey(task, repeat) for task in range(TASKS) for repeat in range(REPEATS)]
ATTEMPTS = st.lists(st.tuples(st.sampled_from(KEYS), st.sampled_from(OUTCOMES)), max_size=25)
SESSIONS = st.lists(ATTEMPTS, min_size=1, max_size=3)


def folded(sessions):
    standings = Standings()
    for key in KEYS:
        standings.plan(key, "ab"[key.task % 2])
    for session, attempts in enumerate(sessions, start=1):
        for key, outcome in attempts:
            number = standings.next_attempt(key)
            standings.reserved(key, number, session)
            if outcome is not None:
                standings.add(Record(key, number, outcome, "r", "a"))
    return standings


@given(SESSIONS, st.booleans())
def test_every_answer_about_what_is_owed_together_is_the_same(sessions, alive):
    standings = folded(sessions)
    rules = Rules(group_scored=True, live_session=len(sessions) if alive else None)
    owed = {key for key in KEYS if standings.standing(key, rules).is_owed}
    is_owed = standings.owed_test(rules)
    assert {key for key in KEYS if is_owed(packed(key.task, key.rollout))} == owed
    assert {one.key for one in standings.standings(rules) if one.is_owed} == owed
    coverage = standings.coverage(rules=rules)
    assert coverage.law_holds
    assert coverage.owed == sum(owed_by(coverage).values()) == len(owed)
    assert coverage.owed + coverage.in_flight + sum(not_owed_by(coverage).values()) == len(KEYS)


@given(SESSIONS, st.booleans())
def test_a_task_is_owed_whole_or_not_at_all_but_for_what_is_in_flight(sessions, alive):
    standings = folded(sessions)
    live = len(sessions) if alive else None
    rules, apart = Rules(group_scored=True, live_session=live), Rules(live_session=live)
    for task in range(TASKS):
        stands = [standings.standing(key, rules) for key in KEYS if key.task == task]
        at_rest = [one for one in stands if one.disposition is not Disposition.IN_FLIGHT]
        assert len({one.is_owed for one in at_rest}) <= 1
        if any(standings.standing(one.key, apart).disposition in OWED for one in stands):
            assert all(one.is_owed for one in at_rest)


@given(SESSIONS)
def test_what_is_owed_by_itself_is_owed_together_and_counts_where_it_stands(sessions):
    standings = folded(sessions)
    together, apart = (standings.coverage(rules=Rules(group_scored=grouped)) for grouped in (True, False))
    assert together.owed == apart.owed + together.with_their_tasks
    assert (together.scored, together.failed, together.interrupted) == (apart.scored, apart.failed, apart.interrupted)

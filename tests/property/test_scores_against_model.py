"""The scores of a run, whatever its records and their order, are those of a model that keeps every reward."""

from hypothesis import given, settings
from hypothesis import strategies as st

from property import scores_model
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Interrupted, Masked, NeverStarted, Scored, Unscored
from rollbook.records.record import Record
from rollbook.scoring.tally import Tally

KEYS = st.tuples(st.integers(0, 9), st.integers(0, 5))
ANY_REWARDS = st.floats(-1e6, 1e6)
BINARY_REWARDS = st.sampled_from([0.0, 1.0])


def outcomes(rewards):
    return st.one_of(
        st.builds(Scored, rewards),
        st.builds(Scored, rewards),
        st.builds(Masked, rewards),
        st.just(Unscored()),
        st.builds(Failed, st.sampled_from(["judge_failed", "agent_run_error"])),
        st.just(Interrupted("kill_shaped")),
        st.just(NeverStarted("drained")),
    )


def endings(rewards):
    return st.dictionaries(KEYS, st.tuples(st.sampled_from("abc"), outcomes(rewards)), max_size=60)


@settings(deadline=None)
@given(ends=endings(ANY_REWARDS) | endings(BINARY_REWARDS), data=st.data())
def test_records_in_any_order_have_the_scores_of_a_model_that_keeps_every_reward(ends, data):
    tally = Tally()
    for (task, rollout), (agent, outcome) in data.draw(st.permutations(list(ends.items()))):
        tally.add(Record(RolloutKey(task, rollout), 0, outcome, agent=agent))
    found = tally.scores()
    agents, worst = scores_model.scores(ends)
    assert list(found.agents) == agents
    assert list(found.worst) == worst

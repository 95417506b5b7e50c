"""docs/record-format.md says what becomes of a reply that is no result."""

import pytest

from architecture.source_tree import table, words_in_code
from rollbook.outcomes.classify import ending_of_reply
from rollbook.records.exchange import Reply
from rollbook.records.identity import RolloutKey
from rollbook.records.task import Rollout

EXAMPLES = {
    text: words_in_code(becomes)
    for seen, becomes, *_ in table("record-format.md", "What a failed request becomes")
    if "success without a body" in seen or seen.startswith("a reward")
    for text in words_in_code(seen)
}


def test_rewards_that_cannot_be_are_shown():
    assert {"NaN", "1e400", '"1"'} <= EXAMPLES.keys()


@pytest.mark.parametrize("text", sorted(EXAMPLES))
def test_a_reward_becomes_what_its_row_says(text):
    reply = Reply(200, b'{"reward":' + text.encode() + b"}")
    outcome = ending_of_reply(reply, Rollout(RolloutKey(0, 0), b"{}", "env")).outcome
    failure_class, *kind = EXAMPLES[text]
    assert outcome.failure_class == failure_class
    assert (outcome.kind == "verifier_error") is (kind == ["verifier_error"])

import subprocess
import sys

import msgspec
import pytest

from rollbook.records.nesting import MOST_LEVELS, not_too_deep


def nested(levels, opening=b"[", closing=b"]", core=b""):
    return opening * levels + core + closing * levels


@pytest.mark.parametrize(
    "text",
    [
        nested(MOST_LEVELS),
        nested(MOST_LEVELS - 1, b'{"a":', b"}", b"1"),
        b"[" + b"[]," * 5000 + b"[]]",
        b"[" * 900 + b"x" + b"]" * 900 + b"[" * 900,
    ],
)
def test_text_that_is_only_wide_or_no_json_passes(text):
    assert not_too_deep(text) is text


@pytest.mark.parametrize("text", [nested(MOST_LEVELS + 1), nested(MOST_LEVELS + 1, b'{"a":', b"}", b"1")])
def test_text_that_is_too_deep_is_refused(text):
    with pytest.raises(msgspec.DecodeError, match="nested deeper than"):
        not_too_deep(text)


def test_a_hostile_reply_cannot_end_a_process_whose_recursion_limit_was_raised():
    code = (
        "import sys; sys.setrecursionlimit(10**6)\n"
        "from rollbook.outcomes.classify import ending_of_reply\n"
        "from rollbook.records.exchange import Reply\n"
        "from rollbook.records.identity import RolloutKey\n"
        "from rollbook.records.task import Rollout\n"
        "body = b'[' * 200_000 + b']' * 200_000\n"
        "print(ending_of_reply(Reply(200, body), Rollout(RolloutKey(0, 0), b'{}', 'e')).outcome.failure_class)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "agent_run_error\n"

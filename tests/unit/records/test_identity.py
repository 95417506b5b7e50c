import pytest

from rollbook.errors import InputError
from rollbook.records.episode_models import EpisodeId
from rollbook.records.identity import maybe_rollout_id


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"_ng_task_index": 3, "_ng_rollout_index": 0}, "3-0"),
        ({"_ng_task_index": 3, "_ng_rollout_index": 0, "_ng_attempt_index": 2}, "3-0-a2"),
        ({"_ng_rollout_id": "own.id", "_ng_task_index": 3, "_ng_rollout_index": 0}, "own.id"),
        ({"_ng_task_index": 3}, None),
        ({"_ng_task_index": True, "_ng_rollout_index": 0}, None),
        ({}, None),
    ],
)
def test_the_capture_key_of_a_row(row, expected):
    assert maybe_rollout_id(row) == expected


@pytest.mark.parametrize("bad", ["", "-a", "a b", "x-a1", "x-a12", "../x"])
def test_an_id_that_breaks_the_rule_or_names_an_attempt_is_refused(bad):
    with pytest.raises(InputError, match="rollout id"):
        maybe_rollout_id({"_ng_rollout_id": bad})
    with pytest.raises(ValueError, match="rollout id"):
        EpisodeId(rollout_id=bad)


@pytest.mark.parametrize("good", ["x-a0", "x-a", "x-ab", "7-2"])
def test_an_id_that_only_looks_like_an_attempt_is_fine(good):
    assert EpisodeId(rollout_id=good).capture_key == good

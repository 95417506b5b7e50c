"""How a new plan differs from the one on disk."""

import json
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.errors import InputError
from rollbook.records.identity import RolloutKey
from rollbook.recovery.plan_digest import PlanComparison, PlanDigest, added_lines, compare_plans, content_digest


def line(task, rollout, text="x"):
    return RolloutKey(task, rollout), json.dumps({"_ng_task_index": task, "text": text}).encode()


def plan(tasks, repeats=2, text="x"):
    return [line(task, rollout, text) for task in range(tasks) for rollout in range(repeats)]


OLD = plan(4)
COMPARISONS = [
    ("the same plan", OLD, PlanComparison(same=8)),
    ("the same plan in another order", OLD[::-1], PlanComparison(same=8)),
    ("a larger limit", plan(6), PlanComparison(same=8, added=4)),
    ("more repeats", plan(4, 3), PlanComparison(same=8, added=4)),
    ("a smaller limit", plan(1), PlanComparison(same=2, missing=6)),
    ("fewer repeats of more tasks", plan(6, 1), PlanComparison(same=4, added=2, missing=4)),
    ("nothing", [], PlanComparison(missing=8)),
    (
        "one row edited",
        [*OLD[:3], line(1, 1, "y"), *OLD[4:]],
        PlanComparison(same=7, changed=(RolloutKey(1, 1),), changed_count=1),
    ),
    (
        "every row edited",
        plan(4, text="y"),
        PlanComparison(changed=tuple(key for key, _ in OLD[:5]), changed_count=8),
    ),
]


@pytest.mark.parametrize(("new", "found"), [row[1:] for row in COMPARISONS], ids=[row[0] for row in COMPARISONS])
def test_a_plan_is_compared_rollout_by_rollout(new, found):
    assert compare_plans(PlanDigest.of(OLD), iter(new)) == found


def test_new_lines_stream_out_in_their_order():
    new = plan(6, 3)
    old = dict(OLD)
    assert list(added_lines(PlanDigest.of(OLD), iter(new))) == [(key, text) for key, text in new if key not in old]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":1,"b":{"c":2,"d":3}}', b'{"b": {"d": 3, "c": 2}, "a": 1}\n'),
        (b'{"temperature":1}', b'{"temperature":1.0}'),
        (b'{"n":1180591620717411303424}', b'{"n": 1180591620717411303424}'),
        (b"no json", b"no json\n"),
        ('{"a":"ü"}'.encode(), b'{"a":"\\u00fc"}'),
    ],
)
def test_lines_of_one_content_are_alike(one, other):
    assert content_digest(one) == content_digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (b'{"a":"1.0"}', b'{"a":"1"}'),
        (b'{"a":[1,2]}', b'{"a":[2,1]}'),
        (b'{"a":null}', b"{}"),
        (b'{"a":1e400}', b'{"a":null}'),
        (b'{"a":true}', b'{"a":1}'),
        (b'{"a":0.1}', b'{"a":0.2}'),
        (b'{"a":"x"}', b'{"a":"x "}'),
        (b"no json", b"no  json"),
    ],
)
def test_lines_of_two_contents_are_not_alike(one, other):
    assert content_digest(one) != content_digest(other)


def test_a_line_that_is_nested_beyond_measure_stands_for_itself():
    deep = b"[" * 100_000 + b"]" * 100_000
    assert content_digest(deep) == content_digest(deep + b"\n")


def test_numbers_beyond_sixty_four_bits_are_refused():
    with pytest.raises(InputError, match="64 bits"):
        PlanDigest.of([line(2**64, 0)])


def test_a_planned_rollout_costs_at_most_forty_bytes_and_its_index_eight_more():
    count = 20_000
    digest = PlanDigest.of((RolloutKey(task, 0), b"{}") for task in range(count))
    assert digest.place_of(RolloutKey(count - 1, 0)) == count - 1
    held = (digest._tasks, digest._rollouts, digest._contents, digest._by_key)
    assert sum(map(sys.getsizeof, held)) <= 48 * count


KEYS = st.builds(RolloutKey, st.integers(0, 5), st.integers(0, 3))
PLANS = st.dictionaries(KEYS, st.sampled_from([b"{}", b'{"a":1}', b'{"a": 1.0}']), max_size=16)


@given(PLANS, PLANS)
def test_a_comparison_agrees_with_two_mappings(old, new):
    digest = PlanDigest.of(old.items())
    found = compare_plans(digest, new.items())
    both = [key for key in new if key in old]
    changed = [key for key in both if content_digest(old[key]) != content_digest(new[key])]
    assert (found.same, found.changed_count) == (len(both) - len(changed), len(changed))
    assert (found.added, found.missing) == (len(new.keys() - old.keys()), len(old.keys() - new.keys()))
    assert found.changed == tuple(changed[:5])
    assert dict(added_lines(digest, new.items())) == {key: new[key] for key in new if key not in old}


SKILLS = {"path": "skills", "hash": "0123456789ab", "skills": [{"name": "one", "description": "adds"}]}


@pytest.mark.parametrize(
    ("other", "alike"),
    [
        (SKILLS | {"skills": [{"name": "one", "description": "adds --- and subtracts"}]}, True),
        (SKILLS | {"path": "elsewhere"}, True),
        ({"hash": SKILLS["hash"]}, True),
        (SKILLS | {"hash": "ba9876543210"}, False),
        (None, False),
        ({"path": "skills"}, False),
        (SKILLS["hash"], False),
    ],
)
def test_skills_of_one_hash_are_the_same_skills_however_they_were_read(other, alike):
    one, another = (json.dumps({"q": 1, "skills_ref": ref}).encode() for ref in (SKILLS, other))
    assert (content_digest(one) == content_digest(another)) is alike
    assert content_digest(one) != content_digest(json.dumps({"q": 2, "skills_ref": SKILLS}).encode())


def test_skills_without_a_hash_are_compared_whole():
    refs = ({"path": "a"}, {"path": "b"}, "a", "b", None)
    assert len({content_digest(json.dumps({"skills_ref": ref}).encode()) for ref in refs}) == len(refs)

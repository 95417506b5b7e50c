"""Metrics that are computed in a stream against those that are computed with every row at hand."""

import random

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rollbook.scoring.aggregate import compute_aggregate_metrics
from rollbook.scoring.streamed import StreamedMetrics
from rollbook.verbs.light_rows import light_row
from thoroughness import examples

NUMBERS = st.one_of(
    st.booleans(),
    st.integers(-3, 3),
    st.integers(2**53 - 1, 2**64),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0, 0.0, -0.0, 1, 1.0, 10**400]),
)
VALUES = st.one_of(NUMBERS, st.none(), st.just("7"), st.just([1, {"reward": 2}]), st.just({"a": 1}))
USAGE = st.one_of(
    st.none(), st.just("none"), st.dictionaries(st.sampled_from(["input_tokens", 'odd"', "reward", "_x"]), VALUES)
)
RESPONSE = st.one_of(
    st.none(),
    st.just("text"),
    st.fixed_dictionaries({"output": st.just([])}, optional={"usage": USAGE, "incomplete_details": VALUES}),
)
PERF = st.dictionaries(
    st.sampled_from(["num_turns", "completion_tokens", "total_latency_ms", "token_observability_coverage"]), NUMBERS
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "reward": NUMBERS,
        "score": VALUES,
        'odd"\\': VALUES,
        "_private": VALUES,
        "rollout_id": VALUES,
        "mask_sample": st.one_of(st.booleans(), st.none(), st.just(1)),
        "response": RESPONSE,
        "responses_create_params": st.just({"input": []}),
        "ng_perf": st.one_of(PERF, st.none(), st.just(3)),
    },
)
KEYS = st.tuples(st.integers(0, 3), st.integers(0, 4))


def saved(rows):
    return [
        msgspec.json.encode({"_ng_task_index": task, "_ng_rollout_index": rollout} | fields)
        for (task, rollout), fields in sorted(rows.items())
    ]


def streamed(lines):
    entries = []
    metrics = StreamedMetrics(lambda entry: entries.append(msgspec.json.decode(entry)))
    for line in lines:
        metrics.add(line)
    return msgspec.structs.asdict(metrics.end()) | {"group_level_metrics": entries}


def at_once(lines):
    return compute_aggregate_metrics([msgspec.json.decode(light_row(line)) for line in lines]).model_dump()


@settings(max_examples=examples(60), deadline=None)
@given(st.dictionaries(KEYS, FIELDS, max_size=14))
def test_a_stream_of_rows_has_the_metrics_of_the_rows_together(rows):
    lines = saved(rows)
    assert streamed(lines) == at_once(lines)


@settings(max_examples=examples(10), deadline=None)
@given(st.integers(0, 1 << 30), st.integers(1, 5), st.sampled_from([[0.0, 1.0], [0.0, 0.25, -0.1, 7]]))
def test_many_rows_with_few_rewards_have_the_metrics_of_the_rows_together(seed, repeats, rewards):
    choose = random.Random(seed)  # noqa: S311  any order will do
    lines = saved({divmod(number, repeats): {"reward": choose.choice(rewards)} for number in range(4200)})
    assert streamed(lines) == at_once(lines)

"""What rows amount to, held against plain sums over all of them."""

import random
import statistics

import pytest

from rollbook.verbs.dataset_metrics import DatasetMetrics
from rollbook.verbs.distinct_texts import DistinctTexts


def row(text, **fields):
    return {"responses_create_params": {"input": [{"role": "user", "content": text}]}, **fields}


def told(*rows, times=1):
    metrics = DatasetMetrics()
    for one in rows:
        metrics.add(one, None, times)
    return metrics.told()


def test_a_distribution_is_that_of_all_numbers_and_its_spread_that_of_a_sample():
    numbers = [1, 2, 4, 10]
    assert told(*(row("a b", size=number) for number in numbers))["size"] == {
        "Total # non-null values": 4,
        "Average": 4.25,
        "Min": 1.0,
        "Max": 10.0,
        "Standard deviation": round(statistics.stdev(numbers), 2),
    }


def test_a_number_far_from_zero_keeps_its_spread():
    assert told(*(row("a", at=1e9 + step) for step in (0, 1, 2)))["at"]["Standard deviation"] == 1.0


def test_what_grows_beyond_a_float_is_null():
    found = told(*(row("a", scale=scale) for scale in (1e200, 0.5, 1e200)))["scale"]
    assert (found["Average"], found["Max"], found["Standard deviation"]) == (2e200 / 3, 1e200, None)
    found = told(*(row("a", scale=scale) for scale in (9e299, -9e299)), times=10**9)["scale"]
    assert (found["Average"], found["Standard deviation"]) == (None, None)


def test_numbers_below_one_keep_three_places():
    assert told(row("a", share=0.12345), row("a", share=0.5))["share"]["Average"] == 0.312


def test_words_are_those_of_the_parameters_as_json():
    assert told(row("one two three"))["Json-dumped number of words (proxy for token count)"]["Average"] == 7.0


@pytest.mark.parametrize(
    ("given", "turns"),
    [
        ("as text", 1),
        ([{"role": "system", "content": "s"}, {"role": "user", "content": "u"}, {"role": "user", "content": "v"}], 2),
        ([], 0),
    ],
)
def test_turns_are_the_users_and_none_are_no_value(given, turns):
    found = told({"responses_create_params": {"input": given}})["Number of turns"]
    assert (found["Total # non-null values"], found["Average"]) == (min(turns, 1), float(turns))


def test_tools_and_temperature_count_where_they_are_said():
    found = told({"responses_create_params": {"input": "x", "tools": [{}, {}], "temperature": 0.6}}, row("y"))
    assert (found["Number of tools"]["Average"], found["Number of tools"]["Total # non-null values"]) == (2.0, 1)
    assert found["Temperature"]["Average"] == 0.6


def test_texts_are_counted_lists_count_as_their_members_and_objects_as_nothing():
    found = told(row("a", tags=["x", "y"], deep={"k": 1}), row("b", tags=["x"], deep={"k": 2}, none=None))
    assert found["tags"] == {"unique_count": 2, "total_count": 3}
    assert not {"deep", "none"} & found.keys()


def test_what_routes_a_row_is_no_field_of_its_task():
    found = told(row("a", agent_ref={"name": "x"}, task_source="s", _ng_task_index=1, answer="4"))
    assert list(found)[5:] == ["answer"]


def test_a_row_stands_for_so_many_as_it_is_repeated():
    found = told(row("a", answer="4", n=1), row("b", answer="5", n=3), times=3)
    assert found["Number of examples"] == 6
    assert found["answer"] == {"unique_count": 2, "total_count": 6}
    assert found["n"]["Standard deviation"] == round(statistics.stdev([1, 1, 1, 3, 3, 3]), 2)


def test_the_fields_of_an_episode_task_are_those_of_its_input():
    task = {"task_id": {"taskset": "t", "task_id": "1"}, "task_input": row("a", answer="4")}
    assert told(task)["answer"] == {"unique_count": 1, "total_count": 1}


def test_what_a_component_computes_stands_for_a_field_of_the_same_name():
    metrics = DatasetMetrics()
    metrics.add(row("a", level="hard"), {"level": 3, "parts": 2})
    found = metrics.told()
    assert (found["level"]["Average"], found["parts"]["Average"]) == (3.0, 2.0)


def test_fields_that_differ_from_row_to_row_are_followed_up_to_a_thousand():
    metrics = DatasetMetrics()
    for number in range(1200):
        metrics.add(row("a", **{f"f{number}": 1}))
    assert (len(metrics.told()), metrics.left_out) == (1005, 200)


def test_texts_are_told_apart_on_disk_as_in_memory():
    chance = random.Random(7)  # noqa: S311  a test is to be the same every time
    texts = [(chance.choice("ab"), str(chance.randrange(3000))) for _ in range(10_000)]
    counted = DistinctTexts(most_held=64)
    for name, text in texts:
        counted.add(name, text)
    assert [counted.count(name) for name in "abc"] == [len({t for n, t in texts if n == name}) for name in "abc"]
    counted.close()

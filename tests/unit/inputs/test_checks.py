import pytest

from rollbook.errors import InputError
from rollbook.inputs.checks import RowChecks
from rollbook.inputs.examples import rows_of

PROMPT = {"responses_create_params": {"input": []}}


def check(rows, **options):
    return list(RowChecks(**options).watch(rows_of(rows)))


def test_an_empty_input_list_is_legal():
    assert len(check([PROMPT])) == 1


def test_a_template_lifts_the_need_of_a_prompt():
    assert len(check([{"q": 1}], prompt_is_filled_in=True)) == 1


def test_an_episode_task_needs_no_prompt_block():
    assert len(check([{"task_id": {"taskset": "t", "task_id": "1"}, "task_input": {}}])) == 1


@pytest.mark.parametrize(
    "rows",
    [
        [PROMPT | {"_ng_task_index": 3, "q": 1}, PROMPT | {"_ng_task_index": 3, "q": 2}],
        [PROMPT | {"task_id": "same", "q": 1}, PROMPT | {"task_id": "same", "q": 2}],
        [
            {"task_id": {"taskset": "t", "task_id": "1"}, "task_input": {"q": 1}},
            {"task_id": {"taskset": "t", "task_id": "1"}, "task_input": {"q": 2}},
        ],
    ],
)
def test_one_id_on_two_tasks_is_refused_with_both_places(rows):
    with pytest.raises(InputError, match="row 0 and row 1"):
        check(rows)


@pytest.mark.parametrize(
    "rows",
    [
        [PROMPT | {"task_id": "same"}, PROMPT | {"task_id": "same"}],
        [PROMPT | {"task_id": "1", "task_source": "a"}, PROMPT | {"task_id": "1", "task_source": "b"}],
    ],
)
def test_equal_rows_and_rows_of_other_sets_may_share_an_id(rows):
    assert len(check(rows)) == 2


def test_numbering_some_rows_only_is_refused():
    with pytest.raises(InputError, match="Number all rows or none"):
        check([PROMPT | {"_ng_task_index": 0}, PROMPT | {"q": 1}])


@pytest.mark.parametrize("index", [-1, "3", 1.5, True])
def test_a_task_index_is_a_whole_number(index):
    with pytest.raises(InputError, match="whole number"):
        check([PROMPT | {"_ng_task_index": index}])


def test_an_explicit_id_that_names_an_attempt_is_refused():
    with pytest.raises(InputError, match="row 0: rollout id 'x-a2' names an attempt"):
        check([PROMPT | {"_ng_rollout_id": "x-a2"}])

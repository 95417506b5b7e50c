import pytest

from rollbook.errors import InputError
from rollbook.inputs import checks
from rollbook.inputs.checks import RowChecks
from rollbook.inputs.examples import rows_of

PROMPT = {"responses_create_params": {"input": []}}


def check(rows, **options):
    return list(RowChecks(**options).watch(rows_of(rows)))


def test_an_empty_input_list_is_legal():
    assert len(check([PROMPT])) == 1


def test_a_template_lifts_the_need_of_a_prompt():
    for block in ({}, {"responses_create_params": None}, {"responses_create_params": {"temperature": 1}}):
        assert len(check([{"q": 1} | block], prompt_is_filled_in=True)) == 1


@pytest.mark.parametrize("block", ["gpt", [{"role": "user"}], False, 0])
def test_a_template_takes_the_place_of_no_block_that_says_something_else(block):
    with pytest.raises(InputError, match=r"`responses_create_params` is missing or no object in: row 1"):
        check([{"q": 1}, {"q": 2, "responses_create_params": block}], prompt_is_filled_in=True)


def test_an_episode_task_needs_no_prompt_block():
    assert len(check([{"task_id": {"taskset": "t", "task_id": "1"}, "task_input": {}}])) == 1


@pytest.mark.parametrize(
    "rows",
    [
        [PROMPT | {"_ng_task_index": 3, "q": 1}, PROMPT | {"_ng_task_index": 3, "q": 2}],
        [PROMPT | {"task_id": "same", "q": 1}, PROMPT | {"task_id": "same", "q": 2}],
        [PROMPT | {"task_id": "same", "_ng_rollout_index": index} for index in range(2)],
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
        [PROMPT | {"_ng_task_index": 1, "agent_ref": {"name": name}} for name in "ab"],
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


EPISODE = {"task_id": {"taskset": "t", "task_id": "1"}, "task_input": {}}


@pytest.mark.parametrize(
    ("row", "said"),
    [
        (PROMPT | {"task_source": ["x"], "task_id": 3}, r"`task_source` must be text, found \['x'\]"),
        (PROMPT | {"agent_ref": {"name": ["A"]}, "task_id": 3}, "`agent_ref` must be an object .*'name'"),
        (PROMPT | {"agent_ref": "somebody_else"}, "`agent_ref` must be an object .*'somebody_else'"),
        (PROMPT | {"agent_ref": ["A"]}, "`agent_ref` must be an object"),
        (PROMPT | {"agent_ref": 0}, "`agent_ref` must be an object"),
        (PROMPT | {"agent_ref": {"nmae": "A"}}, "`agent_ref` must be an object .*'nmae'"),
        (PROMPT | {"agent_ref": {"name": None}}, "`agent_ref` must be an object"),
        (PROMPT | {"_ng_environment_server": {"name": "e"}}, "`_ng_environment_server` must be text"),
        (PROMPT | {"_ng_rollout_id": 7}, "`_ng_rollout_id` must be text, found 7"),
        (
            EPISODE | {"task_id": {"taskset": ["a"], "task_id": "1"}},
            r"`task_id\.taskset` of an episode task must be text",
        ),
        (EPISODE | {"task_id": {"taskset": "a", "task_id": 1}}, r"`task_id\.task_id` of an episode task must be text"),
        (EPISODE | {"task_id": {"taskset": "", "task_id": "1"}}, r"`task_id\.taskset` of an episode task must be text"),
    ],
)
def test_a_name_that_is_no_text_is_refused_with_its_place(row, said):
    with pytest.raises(InputError, match=f"row 1: {said}"):
        check([PROMPT, row])


@pytest.mark.parametrize(
    "names",
    [
        {"agent_ref": {}},
        {"agent_ref": None},
        {"agent_ref": {"name": "A", "type": "responses_api_agents"}},
        {"task_source": None, "_ng_environment_server": None, "_ng_rollout_id": None},
        {"_ng_task_index": 0, "_ng_rollout_index": 5, "_ng_rollout_id": "mine", "_ng_environment_server": "e"},
        {"task_id": {"$oid": ["x"]}},
    ],
)
def test_rows_may_name_nobody_and_may_number_themselves(names):
    assert len(check([PROMPT | names])) == 1


@pytest.mark.parametrize(
    "key",
    [
        *("_ng_failure_class", "_ng_failure_terminal", "_ng_failure_of_tomorrow", "_ng_no_persist"),
        *("_ng_dispatch_drained", "_ng_omitted_rollout", "_ng_unrouted_run_error", "_ng_attempt_index", "_ng_run_id"),
    ],
)
def test_what_collection_alone_writes_is_refused_in_a_dataset(key):
    with pytest.raises(InputError, match=f"row 1: `{key}`: collection alone writes this"):
        check([PROMPT, PROMPT | {key: 1}])


def test_rows_at_fault_are_all_named_and_the_rest_is_counted():
    seen = []
    with pytest.raises(InputError) as caught:
        seen.extend(RowChecks().watch(rows_of([PROMPT, *(PROMPT | {"agent_ref": "A"} for _ in range(22)), PROMPT])))
    assert "row 1: " in str(caught.value)
    assert "row 20: " in str(caught.value)
    assert "and 2 more" in str(caught.value)


def test_a_row_with_a_number_and_an_id_is_digested_once(monkeypatch):
    digested = []
    digest = checks.content_digest
    monkeypatch.setattr(checks, "content_digest", lambda row: digested.append(row["q"]) or digest(row))
    check([PROMPT | {"_ng_task_index": 0, "task_id": "a", "q": number} for number in (1, 1)])
    assert digested == [1, 1]

"""Schemas of task fields: where they come from, how a row's fields are gathered, and what is found in rows."""

import json

import pytest

from rollbook.errors import TaskDataSchemaError
from rollbook.inputs.task_data import (
    TaskDataValidator,
    load_task_data_schema,
    normalize_task_fields,
    validate_jsonl_rows,
)

SCHEMA = """
from pydantic import BaseModel, ConfigDict, Field

class TaskData(BaseModel):
    model_config = ConfigDict(extra="allow")
    expected: str = Field(json_schema_extra={"consumed_by": ["verify"]})
    tolerance: float = Field(0.0, json_schema_extra={"legacy_location": "verifier_metadata"})
"""
UNION = """
from pydantic import BaseModel

class Number(BaseModel):
    number: int

class Word(BaseModel):
    word: str

TaskData = Number | Word
"""


@pytest.fixture
def server(tmp_path):
    def written(text=SCHEMA):
        (tmp_path / "task_data.py").write_text(text, encoding="utf-8")
        return tmp_path

    return written


@pytest.fixture
def validator(server):
    return TaskDataValidator("colours", load_task_data_schema(server()), "rows.jsonl")


def test_a_server_without_the_file_declares_nothing(tmp_path):
    assert load_task_data_schema(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("import nowhere_to_be_found", "No module named 'nowhere_to_be_found'"),
        ("class TaskData(", "SyntaxError"),
        ("fields = 3", "declares no `TaskData`"),
        ("1 / 0", "ZeroDivisionError"),
        ("assert False, 'not here'", "AssertionError: not here"),
        ("class Own(Exception): pass\nraise Own('mine')", "Own: mine"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("open('/nope')", r"task_data\.py: FileNotFoundError"),
        ("from typing import Any, Callable\nTaskData = dict[str, Callable[[], Any]]", "PydanticInvalidForJsonSchema"),
        ("TaskData = object()", "TypeError|PydanticSchemaGenerationError"),
    ],
)
def test_a_file_that_declares_no_schema_is_told_by_its_name(server, text, why):
    with pytest.raises(TaskDataSchemaError, match=why) as raised:
        load_task_data_schema(server(text))
    assert "task_data.py" in str(raised.value)


VALIDATING = """
from pydantic import BaseModel, field_validator

class TaskData(BaseModel):
    name: str

    @field_validator("name")
    @classmethod
    def known(cls, name):
        return {"a": "b"}[name] if name != "left" else exit(0)
"""


def test_a_validator_that_raises_is_an_error_of_the_row(server):
    validator = TaskDataValidator("colours", load_task_data_schema(server(VALIDATING)), "rows.jsonl")
    for index, name in enumerate(["a", "c", "left"]):
        validator.validate_row(index, {"name": name})
    assert validator.report.error_rows == 2
    assert validator.report.errors == [
        "row 1: task_data.py: a validator raised KeyError: 'c'",
        "row 2: task_data.py: a validator raised SystemExit: 0",
    ]


def test_two_servers_have_schemas_of_their_own(tmp_path):
    for name, text in (("one", SCHEMA), ("two", UNION)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "task_data.py").write_text(text, encoding="utf-8")
    one, two = (load_task_data_schema(tmp_path / name) for name in ("one", "two"))
    assert one.validate_python({"expected": "teal"}).expected == "teal"
    assert two.validate_python({"number": 4}).number == 4


@pytest.mark.parametrize(
    ("row", "fields", "conflicts"),
    [
        ({"responses_create_params": {}, "agent_ref": {}, "task_source": "a", "_ng_task_index": 0}, {}, []),
        ({"a": 1, "verifier_metadata": {"b": 2}, "task_data": {"c": 3}}, {"a": 1, "b": 2, "c": 3}, []),
        ({"a": 1, "task_data": {"a": 1}}, {"a": 1}, []),
        ({"a": 1, "verifier_metadata": {"a": 2}, "task_data": {"a": 3}}, {"a": 3}, ["a"]),
        ({"verifier_metadata": None, "task_data": [1]}, {}, []),
    ],
)
def test_the_fields_of_a_row_are_gathered_from_wherever_it_carries_them(row, fields, conflicts):
    assert normalize_task_fields(row) == (fields, conflicts)


def test_rows_as_declared_are_clean(validator):
    validator.validate_row(0, {"expected": "teal", "verifier_metadata": {"tolerance": 0.1}})
    validator.validate_row(1, {"task_data": {"expected": "grey", "tolerance": 0.1}})
    validator.validate_row(2, {"task_id": {"taskset": "c", "task_id": "2"}, "task_input": {"expected": "red"}})
    assert validator.report.clean
    assert validator.report.summary() == "rows.jsonl (colours): 3 rows, 0 with errors"


def test_a_field_that_is_missing_is_an_error_and_named(validator):
    validator.validate_row(4, {"tolerances": 1})
    assert (validator.report.clean, validator.report.error_rows) == (False, 1)
    assert "row 4: expected: Field required" in validator.report.summary()
    assert "unknown: tolerances (1)" in validator.report.summary()


def test_a_field_that_nobody_declared_is_counted_and_no_fault(validator):
    validator.validate_row(0, {"expected": "teal", "mood": 1})
    assert validator.report.unknown == {"mood": 1}
    assert validator.report.clean


def test_a_field_beside_the_place_where_it_is_read_is_misplaced(validator):
    validator.validate_row(0, {"expected": "teal", "tolerance": 0.1})
    assert validator.report.misplaced == {"tolerance": 1}
    assert not validator.report.clean


def test_a_field_with_two_values_is_a_conflict_with_and_without_a_schema(validator):
    row = {"expected": "teal", "task_data": {"expected": "grey"}}
    bare = TaskDataValidator("colours", None, "rows.jsonl")
    for one in (validator, bare):
        one.validate_row(0, row)
        assert one.report.conflicting == {"expected": 1}
        assert not one.report.clean


def test_a_union_declares_the_fields_of_all_its_parts(server):
    validator = TaskDataValidator("mixed", load_task_data_schema(server(UNION)), "rows.jsonl")
    validator.validate_row(0, {"number": 4})
    validator.validate_row(1, {"word": "four"})
    validator.validate_row(2, {"number": "four"})
    assert (validator.report.error_rows, validator.report.unknown) == (1, {})


def test_a_file_is_validated_row_by_row(validator, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(f"{json.dumps({'expected': 'teal'})}\n\n[1]\n{{\n", encoding="utf-8")
    report = validate_jsonl_rows(path, validator)
    assert (report.rows, report.error_rows) == (3, 2)
    assert report.errors == ["row 1: no JSON object", "row 2: no JSON object"]

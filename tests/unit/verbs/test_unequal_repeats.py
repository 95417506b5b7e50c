"""Repeats that cover different tasks: who tells of it, and where."""

import json
import logging

import pytest

from rollbook.api.reward_profiler import RewardProfiler
from rollbook.verbs.metrics_file import doubts_of, warnings_of
from run_folder import said
from unit.verbs.profiled import planned, row, write_run

KEYS = [(0, 0), (0, 1), (1, 0), (2, 0)]
PLAN = [planned(*key) for key in KEYS]
RESULTS = [row(*key, reward=1.0) for key in KEYS]
TOLD = "repeats cover different tasks (of 3 tasks: repeat 0 3, repeat 1 1)"


@pytest.fixture
def run(tmp_path):
    return write_run(tmp_path / "run" / "r.jsonl", PLAN, RESULTS)


def aggregated(run, *flags):
    to = run.parent.parent / "out.jsonl"
    return said(["eval", "aggregate", "--input-glob", str(run), "--output", str(to), "--no-health-check", *flags])


def test_an_aggregation_tells_it_once_on_standard_error_and_in_its_document(run):
    assert aggregated(run).err.count(f"metrics of a: {TOLD}") == aggregated(run).err.count("cover different") == 1
    assert f"metrics of a: {TOLD}" in json.loads(aggregated(run, "--json").out)["warnings"]


def test_a_profile_tells_it_once_on_standard_error_and_in_its_document(run):
    answer = said(["eval", "profile", str(run)])
    assert (answer.code, answer.err.count(f"a: {TOLD}"), answer.err.count("cover different")) == (0, 1, 1)
    answer = said(["eval", "profile", str(run), "--json"])
    assert json.loads(answer.out)["warnings"] == [f"a: {TOLD}"]


def test_a_profiler_in_a_program_logs_it(caplog):
    with caplog.at_level(logging.WARNING):
        RewardProfiler().profile(PLAN, RESULTS)
    assert caplog.messages == [f"a: {TOLD}"]


def entry(*counts, **more):
    repeats = [
        {"_ng_rollout_index": index, "sample_count": count, "missing_count": max(counts) - count}
        for index, count in enumerate(counts)
    ]
    return {"agent_ref": {"name": "a"}, "repeat_level_metrics": repeats} | more


def test_what_a_server_answered_is_told_of_as_what_is_computed_here():
    assert warnings_of([entry(3, 1)]) == doubts_of([entry(3, 1)]) == [f"metrics of a: {TOLD}"]
    assert warnings_of([entry(3, 3)]) == []
    here = entry(3, 1, computed_locally=True, note="no server")
    assert warnings_of([here]) == ["metrics of a: no server", f"metrics of a: {TOLD}"]
    assert doubts_of([here]) == [f"metrics of a: {TOLD}"]


@pytest.mark.parametrize("repeats", [None, "none", [], [7], [{}], [{"missing_count": 0, "sample_count": "x"}]])
def test_entries_of_other_shapes_say_nothing(repeats):
    assert warnings_of([{"agent_ref": {"name": "a"}, "repeat_level_metrics": repeats}]) == []


def test_of_very_many_repeats_the_first_are_listed():
    (told,) = warnings_of([entry(2, *[1] * 30)])
    assert "repeat 19 1, and 11 more)" in told

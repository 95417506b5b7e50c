"""What a judge owes a run, judged for the run itself."""

import json

import pytest
from aiohttp import web

from run_folder import RunFolder, rows_of, said
from stub import adding
from verifying import answered, judge_failed, of_task, reverified, verifying

APPEND = ("--judge-failed-only", "--append")


def judge_is_down(tasks):
    """Return a `/run` script of which the judge fails on some tasks."""
    failing, fine = of_task(*tasks), answered()

    def run(row):
        if not failing(row):
            return fine(row)
        return web.json_response(row | judge_failed(row))

    return run


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path).asks(adding(4))


def held_run(folder, stub):
    folder.run(stub)
    assert folder.status()["coverage"]["held"] == 2
    return folder


def test_a_result_that_a_judge_gives_later_stands(folder):
    with verifying(judge_is_down([1, 2]), verify=lambda _row: {"reward": 0.5}) as stub:
        held_run(folder, stub)
        answer = reverified(stub, folder.output, None, *APPEND)
        assert answer.code == 0, answer.text
        assert [row["_ng_task_index"] for row in stub.judged] == [1, 2]
        coverage = folder.status()["coverage"]
        assert (coverage["scored"], coverage["held"]) == (4, 0)
        assert len(stub.requests) == 4


def test_what_lies_beside_the_run_counts_what_was_judged(folder):
    status, coverage = (folder.folder / f"r_{name}.json" for name in ("batch_status", "coverage"))
    with verifying(judge_is_down([1, 2])) as stub:
        held_run(folder, stub)
        assert json.loads(status.read_bytes())["members"][0]["completed"] == 2
        reverified(stub, folder.output, None, *APPEND)
    assert json.loads(status.read_bytes())["members"][0]["completed"] == 4
    assert json.loads(coverage.read_bytes())["scored"] == 4


def test_the_closing_row_is_of_the_judged_attempt_and_names_what_it_follows(folder):
    with verifying(judge_is_down([1, 2])) as stub:
        held_run(folder, stub)
        reverified(stub, folder.output, None, *APPEND)
    failures = {row["_ng_task_index"]: row for row in rows_of(folder.failures)}
    for row in rows_of(folder.results)[-2:]:
        assert row["_ng_rejudged_failure_id"] == failures[row["_ng_task_index"]]["_ng_failure_id"]
        assert row["response"] == failures[row["_ng_task_index"]]["response"]
        assert row.get("_ng_attempt_index", 0) == 0
    assert folder.told_manifest()["pending_rejudges"] == []


def test_an_admission_is_in_the_manifest_before_the_judge_is_asked(folder):
    admitted = []

    def verify(row):
        pending = folder.told_manifest()["pending_rejudges"]
        admitted.append(f"{row['_ng_task_index']}-0" in {one["identity"] for one in pending})
        return {"reward": 1.0}

    with verifying(judge_is_down([1, 2]), verify=verify) as stub:
        held_run(folder, stub)
        reverified(stub, folder.output, None, *APPEND)
    assert admitted == [True, True]


def test_what_is_judged_is_not_judged_again(folder):
    with verifying(judge_is_down([1, 2])) as stub:
        held_run(folder, stub)
        reverified(stub, folder.output, None, *APPEND)
        again = reverified(stub, folder.output, None, *APPEND)
        assert again.code == 0
        assert len(stub.judged) == 2


def test_a_judge_that_fails_again_leaves_the_answer_to_be_judged_up_to_the_cap(folder):
    with verifying(judge_is_down([1, 2]), verify=judge_failed) as stub:
        held_run(folder, stub)
        for calls in (2, 4, 4):
            answer = reverified(stub, folder.output, None, *APPEND)
            assert len(stub.judged) == calls, answer.text
        assert "used up their attempts" in answer.err
        assert folder.status()["coverage"]["held"] == 2


def test_a_verifier_that_breaks_ends_the_command_and_loses_no_answer(folder):
    with verifying(judge_is_down([1, 2]), verify=lambda _row: web.Response(status=500, text="no")) as stub:
        held_run(folder, stub)
        broken = reverified(stub, folder.output, None, *APPEND)
        assert broken.code == 1
        assert folder.status()["coverage"]["held"] == 2
        assert len(folder.told_manifest()["pending_rejudges"]) == 2
        stub.verify_script = lambda _row: {"reward": 1.0}
        assert reverified(stub, folder.output, None, *APPEND).code == 0
        assert folder.status()["coverage"]["scored"] == 4


def test_a_death_after_the_first_row_pays_no_judge_twice(folder):
    """The manifest as it was when the first row came in is what a process leaves that dies then."""
    left = {}

    def verify(_row):
        left["manifest"] = folder.manifest.read_bytes()
        return {"reward": 1.0}

    with verifying(judge_is_down([1, 2]), verify=verify) as stub:
        held_run(folder, stub)
        before = folder.results.read_bytes()
        reverified(stub, folder.output, None, *APPEND)
        whole = folder.results.read_bytes()
        first = whole[: len(before) + whole[len(before) :].index(b"\n") + 1]
        folder.results.write_bytes(first)
        folder.manifest.write_bytes(left["manifest"])
        lines = folder.log.read_bytes().splitlines(keepends=True)
        folder.log.write_bytes(b"".join(lines[:-1]))
        operation = json.loads(left["manifest"])["pending_rejudges"][0]["operation_id"]
        answer = reverified(stub, folder.output, None, *APPEND)
        assert answer.code == 0, answer.text
        assert len(stub.judged) == 3
        assert rows_of(folder.results)[-1]["_ng_rejudge_operation_id"] == operation
        assert folder.status()["coverage"]["scored"] == 4


def test_an_admission_of_a_rollout_that_was_run_again_meanwhile_is_forgotten(folder):
    down, up = judge_is_down([1, 2]), answered()
    with verifying(lambda row: (up if row.get("_ng_attempt_index") else down)(row)) as stub:
        held_run(folder, stub)
        stub.verify_script = lambda _row: web.Response(status=500)
        reverified(stub, folder.output, None, *APPEND, "--limit", "1")
        assert len(folder.told_manifest()["pending_rejudges"]) == 1
        said(["eval", "resubmit", str(folder.output), "--release-held", "--why", "the judge is gone for good"])
        folder.run_unread(stub, "--resume", "--limit", "4")
        assert folder.status()["coverage"]["scored"] == 4
        stub.verify_script = lambda _row: {"reward": 1.0}
        assert reverified(stub, folder.output, None, *APPEND).code == 0
        assert len(stub.judged) == 1
        assert folder.told_manifest()["pending_rejudges"] == []


def test_a_masked_result_whose_verification_never_came_is_judged_again(folder):
    masked = answered(mask_sample=True, failure_kind="transport_timeout")
    with verifying(lambda row: masked(row) if row["_ng_task_index"] == 3 else answered()(row)) as stub:
        folder.run(stub)
        assert folder.status()["coverage"]["masked"] == 1
        answer = reverified(stub, folder.output, None, *APPEND)
        assert answer.code == 0, answer.text
        (row,) = stub.judged
        assert row["_ng_task_index"] == 3
        assert folder.status()["coverage"]["scored"] == 4
        assert rows_of(folder.results)[-1]["_ng_rejudged_failure_id"].startswith("result-sha256:")


def test_a_resume_of_the_run_goes_on_after_its_judge_was_paid(folder):
    with verifying(judge_is_down([1, 2])) as stub:
        held_run(folder, stub)
        reverified(stub, folder.output, None, *APPEND)
        resumed = folder.run_unread(stub, "--resume")
        assert resumed.code == 0, resumed.text
        assert folder.sent == []


def test_a_folder_that_had_no_manifest_when_its_judge_was_paid_is_gone_on_with_as_any_without_one(folder):
    with verifying(judge_is_down([1, 2])) as stub:
        held_run(folder, stub)
        lost = rows_of(folder.results)[0]["_ng_task_index"]
        folder.results.write_bytes(folder.results.read_bytes().partition(b"\n")[2])
        for name in ("manifest.json", "manifest.log"):
            (folder.folder / f"r_{name}").unlink()
        reverified(stub, folder.output, None, *APPEND)
        judged, asked = folder.told_manifest(), len(stub.requests)
        resumed = folder.run_unread(stub, "--resume")
        assert resumed.code == 0, resumed.text
        assert "had no manifest when a judge was paid for it" in " ".join(resumed.err.split())
        assert [row["_ng_task_index"] for row in stub.requests[asked:]] == [lost]
    manifest = folder.told_manifest()
    assert (manifest["run_id"], manifest["not_resumable"]) == (judged["run_id"], None)
    assert (folder.status()["coverage"]["scored"], folder.status()["state"]) == (4, "finished")


def test_the_mean_that_is_shown_is_that_of_the_run(folder):
    with verifying(judge_is_down([1, 2]), verify=lambda _row: {"reward": 0.5}) as stub:
        held_run(folder, stub)
        answer = reverified(stub, folder.output, None, *APPEND)
    assert "0.750 ± " in answer.out
    assert "2/2 finished (100%) · mean reward 0.750 over 4" in answer.err


@pytest.mark.parametrize("failing", [[1, 2], [0, 1, 2, 3]])
def test_a_run_that_ends_with_answers_kept_for_a_judge_says_how_they_are_judged(folder, failing):
    with verifying(judge_is_down(failing)) as stub:
        said_of = " ".join(folder.run(stub).text.split())
    judged = f"gym eval reverify … --rollouts {folder.output} --judge-failed-only --append"
    wanted = f"{judged}, or run them again with --resubmit"
    assert f"{len(failing)} of 4 rollouts are held for a decision" in said_of
    assert wanted in said_of

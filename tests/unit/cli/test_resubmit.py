"""`gym eval resubmit`: who decided that rollouts run again, and what runs then."""

import json

import pytest
from aiohttp import web

from rollbook.api.rollout_store import RolloutStore
from run_folder import SERVER_ERROR, RunFolder, json_reply, replies, said
from stub import adding, serving
from verifying import answered, judge_failed

WHY = ("--why", "the judge's quota ran out")


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path).asks(adding(4))


def resubmitted(folder, *flags):
    return said(["eval", "resubmit", str(folder.output), *flags])


def held(row):
    return web.json_response(row | judge_failed(row))


MASKED_WITHOUT_ANSWER = json_reply(reward=0.0, mask_sample=True, response={"output": []})


def test_held_rollouts_run_again_once_somebody_releases_them(folder):
    with serving(replies({(1, 0, 0): held, (2, 0, 0): held})) as stub:
        folder.run(stub)
        assert folder.resume(stub).code == 0
        assert folder.sent == []
        told = json.loads(resubmitted(folder, "--release-held", *WHY, "--who", "ada", "--json").out)
        assert (told["owed_before"], told["owed_after"]) == (0, 2)
        folder.resume(stub)
        assert folder.sent == [(1, 0, 1), (2, 0, 1)]
        assert folder.status()["coverage"]["scored"] == 4


def test_what_is_held_later_is_not_released_by_an_earlier_decision(folder):
    with serving(replies({(1,): held})) as stub:
        folder.run(stub)
        resubmitted(folder, "--release-held", *WHY)
        folder.resume(stub)
        assert folder.sent == [(1, 0, 1)]
        folder.resume(stub)
        assert folder.sent == []
        assert folder.status()["coverage"]["held"] == 1


def test_the_manifest_says_who_decided_what_and_why_and_status_and_explain_tell_it(folder):
    with serving(replies({(1, 0, 0): held})) as stub:
        folder.run(stub)
    resubmitted(folder, "--release-held", "--extend-attempts", "2", *WHY, "--who", "ada")
    manifest = folder.told_manifest()
    (approval,) = manifest["approvals"]
    assert (approval["who"], approval["why"], approval["attempts_more"]) == ("ada", WHY[1], 2)
    assert approval["released"] == manifest["released"] == [[1, 0, 0]]
    assert manifest["attempt_extension"] == 2
    (note,) = [text for text in folder.status()["notes"] if "approved" in text]
    assert "ada" in note
    assert WHY[1] in note
    story = said(["eval", "explain", str(folder.output), "1", "0"]).out
    assert "approved to run again by ada" in story


def test_more_attempts_let_a_rollout_run_that_had_used_up_its_own(folder):
    with serving(replies({(3,): SERVER_ERROR})) as stub:
        folder.run(stub)
        for _ in range(3):
            folder.resume(stub)
        assert folder.sent == []
        answer = resubmitted(folder, "--extend-attempts", "1", *WHY)
        assert "4 in all" in answer.out
        folder.resume(stub)
        assert folder.sent == [(3, 0, 3)]
        resubmitted(folder, "--extend-attempts", "1", *WHY)
        assert folder.told_manifest()["attempt_extension"] == 2
        assert len(folder.told_manifest()["approvals"]) == 2


def test_a_masked_result_that_keeps_no_answer_runs_again_and_one_that_does_is_refused(folder):
    masked = answered(mask_sample=True)
    with serving(replies({(1, 0, 0): MASKED_WITHOUT_ANSWER, (2,): masked})) as stub:
        folder.run(stub)
        refused = resubmitted(folder, "--approve-masked", "1:0,2:0", *WHY)
        assert refused.code == 1
        assert "2-0" in refused.err
        assert "gym eval reverify" in refused.err
        assert "approvals" not in folder.told_manifest() or folder.told_manifest()["approvals"] == []
        assert resubmitted(folder, "--approve-masked", "all-infrastructure", *WHY).code == 0
        assert folder.told_manifest()["rerun_masked"] == [[1, 0, 0]]
        folder.resume(stub)
        assert folder.sent == [(1, 0, 1)]
        assert folder.status()["coverage"]["masked"] == 1


@pytest.mark.parametrize("named", ["0:0", "9:9"])
def test_a_rollout_without_a_masked_result_is_refused(folder, named):
    with serving() as stub:
        folder.run(stub)
    refused = resubmitted(folder, "--approve-masked", named, *WHY)
    assert refused.code == 1
    assert "no masked result" in refused.err


def test_a_dry_run_shows_what_would_run_and_writes_nothing(folder):
    with serving(replies({(1,): held})) as stub:
        folder.run(stub)
    before = {path.name: path.read_bytes() for path in folder.folder.iterdir()}
    answer = resubmitted(folder, "--release-held", "--dry-run")
    assert answer.code == 0
    assert "1-0 attempt 0" in answer.out
    assert {path.name: path.read_bytes() for path in folder.folder.iterdir()} == before


def test_the_command_that_goes_on_is_the_one_that_ran_the_run(folder):
    with serving(replies({(1,): held})) as stub:
        folder.run(stub)
    answer = resubmitted(folder, "--release-held", *WHY)
    (command,) = [line for line in answer.out.splitlines() if "--resume" in line]
    assert str(folder.output) in command


def test_a_decision_about_a_run_that_somebody_works_on_is_refused(folder):
    with serving() as stub:
        folder.run(stub)
    with RolloutStore(folder.output):
        refused = resubmitted(folder, "--extend-attempts", "1", *WHY)
        shown = resubmitted(folder, "--extend-attempts", "1", "--dry-run")
    assert refused.code == 1
    assert shown.code == 0
    assert "once it has ended" in shown.out
    assert folder.told_manifest()["attempt_extension"] == 0


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        (("--release-held",), "--why"),
        ((*WHY,), "nothing is decided"),
        (("--approve-masked", "one", *WHY), "TASK:ROLLOUT"),
        (("--extend-attempts", "0", *WHY), "0"),
    ],
)
def test_a_decision_that_is_none_is_a_mistake_of_usage(folder, flags, what):
    with serving() as stub:
        folder.run(stub)
    answer = resubmitted(folder, *flags)
    assert answer.code == 2
    assert what in answer.err


def test_a_folder_without_a_manifest_has_nowhere_to_keep_a_decision(folder):
    with serving() as stub:
        folder.run(stub)
    folder.manifest.unlink()
    folder.log.unlink()
    refused = resubmitted(folder, "--release-held", *WHY)
    assert refused.code == 1
    assert "no manifest" in refused.err


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        (("--release-held", *WHY), "no rollout is held"),
        (("--release-held", "--dry-run"), "no rollout is held"),
        (("--approve-masked", "all-infrastructure", *WHY), "no masked result is without a model's answer"),
    ],
)
def test_a_decision_about_nothing_is_refused_and_leaves_no_trace(folder, flags, what):
    with serving() as stub:
        folder.run(stub)
    before = folder.manifest.read_bytes()
    refused = resubmitted(folder, *flags)
    assert (refused.code, what in refused.err) == (1, True), refused.text
    assert folder.manifest.read_bytes() == before

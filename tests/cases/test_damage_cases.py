"""Cases about files that cannot all be right: each is told by file and line, and what is refused is left as it was."""

import json

import pytest

from cases.played import FAILURES, LOCK, LOG, MANIFEST, PLAN, RESULTS, Played, called, ends, failing, without
from stub import adding, lines, serving

CALM = ["--concurrency", "1"]
UNSAFE = "+allow_unsafe_resume=true"


@pytest.fixture
def played(tmp_path):
    """Four tasks, of which the last one failed."""
    with serving() as stub:
        played = Played(tmp_path, stub, adding(4))
        stub.script = failing(3)
        assert played.run(*CALM).code == 3
        stub.script = failing()
        yield played


def resumed(played, *flags):
    """Go on with files that no strict reader takes."""
    return called(played.words("--resume", *CALM, *flags))


def places(played):
    """Return where a status finds damage, by file name and line, with what is said."""
    code, told = played.status()
    assert code == 5
    return [(damage["place"].rpartition("/")[2], damage["what"]) for damage in told["damage"]]


def test_a_refused_resume_leaves_a_file_that_lost_bytes_as_it_is_and_tells_its_size(played):
    data = played.bytes_of(RESULTS)
    kept = ends(data)[1] + 20
    played.put(RESULTS, data[:kept])
    before = played.files()
    for _ in range(2):
        said = played.resume(*CALM)
        assert said.code == 5
        assert f"{RESULTS}: {len(data)} bytes were written and {kept} are left" in said.text
        assert played.untouched_but(before, {LOCK})
        assert not (played.folder / f"{RESULTS}.torn").exists()
    said = played.resume(*CALM, UNSAFE)
    assert said.code == 0
    assert f"{len(data)} bytes were written and {kept} are left" in said.text
    assert len(played.bytes_of(f"{RESULTS}.torn")) == 21
    assert played.status()[0] == 0


def test_what_was_committed_and_is_no_whole_line_any_more_is_damage_and_not_cut_off(played):
    data = played.bytes_of(RESULTS)
    played.put(RESULTS, data[:-1] + b"]" * 50)
    before = played.files()
    assert played.resume(*CALM).code == 5
    assert played.untouched_but(before, {LOCK})
    assert [place for place, _ in places(played)] == [RESULTS]


def test_what_lies_behind_the_committed_bytes_is_cut_off_and_kept(played):
    played.put(RESULTS, played.bytes_of(RESULTS) + b'{"half')
    assert played.resume(*CALM).code == 0
    assert played.bytes_of(f"{RESULTS}.torn") == b'{"half\n'


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_plan_that_lost_rollouts_is_never_gone_on_with(played, kept):
    played.put(PLAN, b"".join(played.bytes_of(PLAN).splitlines(keepends=True)[:kept]))
    before = played.files()
    for flags in ([], [UNSAFE]):
        said = played.resume(*CALM, *flags)
        assert said.code == 5
        assert PLAN in said.text
        assert "restore the plan" in said.text
        assert played.asked(4) == []
        assert played.untouched_but(before, {LOCK})


def test_a_plan_that_was_edited_and_has_all_its_rollouts_is_gone_on_with_when_told_to(played):
    played.put(PLAN, played.bytes_of(PLAN).replace(b"add 1 and", b"add 9 and"))
    assert played.resume(*CALM).code == 5
    assert played.resume(*CALM, UNSAFE).code == 5
    assert played.asked(4) == [(3, 0)]
    assert played.status()[0] == 5


def test_a_run_and_a_status_end_alike_as_long_as_damage_is_there_and_no_longer(played):
    good = played.bytes_of(RESULTS)
    played.put(RESULTS, good + b'["broken"]\n')
    assert resumed(played, UNSAFE).code == 5
    assert played.status()[0] == 5
    assert resumed(played, UNSAFE).code == 5
    played.put(RESULTS, played.bytes_of(RESULTS).replace(b'["broken"]', b" " * 10))
    assert resumed(played, UNSAFE).code == 0
    assert played.status()[0] == 0


def test_a_plan_that_is_missing_ends_a_resume_with_5_like_a_status(played):
    (played.folder / PLAN).unlink()
    before = played.files()
    said = played.resume(*CALM)
    assert said.code == 5 == played.status()[0]
    assert "restore it" in said.text
    assert "--overwrite" not in said.text
    assert played.untouched_but(before, {LOCK})
    assert played.resume(*CALM, UNSAFE).code == 5
    fresh = played.run(*CALM)
    assert fresh.code == 1
    assert fresh.text.index("Restore the plan") < fresh.text.index("--overwrite")
    assert played.run(*CALM, "--overwrite").code == 0


def test_a_manifest_that_is_gone_beside_its_log_is_damage_and_not_silently_made_anew(played):
    run_id = played.rows(RESULTS)[0]["_ng_run_id"]
    (played.folder / MANIFEST).unlink()
    before = played.files()
    said = played.resume(*CALM)
    assert said.code == 5
    assert f"{MANIFEST}: the manifest is gone" in said.text
    assert UNSAFE in said.text
    assert played.untouched_but(before, {LOCK})
    assert [place for place, _ in places(played)] == [MANIFEST]
    assert played.resume(*CALM, UNSAFE).code == 0
    assert json.loads(played.bytes_of(MANIFEST))["run_id"] == run_id
    assert played.status()[0] == 0


def stranger(played, **fields):
    """Return the first result with other values in it."""
    return lines([played.rows(RESULTS)[0] | fields])


def test_an_attempt_that_was_never_handed_out_is_named_by_its_line(played):
    played.put(RESULTS, played.bytes_of(RESULTS) + stranger(played, _ng_attempt_index=7))
    ((place, what),) = places(played)
    assert place == f"{RESULTS}:4"
    assert what.startswith(f"attempt 7 of rollout 0-0 was never handed out by {LOG}: the log")
    assert f"{RESULTS}:4: attempt 7" in played.resume(*CALM).text


@pytest.mark.parametrize(("count", "more"), [(1, ""), (2, ", and 1 more record like it"), (3, ", and 2 more records")])
def test_a_record_of_another_run_is_named_by_its_line(played, count, more):
    played.put(RESULTS, played.bytes_of(RESULTS) + stranger(played, _ng_run_id="other") * count)
    found = [what for place, what in places(played) if place == f"{RESULTS}:4"]
    assert found
    assert found[0].startswith("a record of another run, other, than ")
    assert more in found[0]


@pytest.mark.parametrize("name", [RESULTS, FAILURES])
def test_a_rollout_that_nobody_planned_is_named_by_its_line(played, name):
    row = without(played.rows(name)[0], ("_ng_run_id",)) | {"_ng_task_index": 77}
    played.put(name, played.bytes_of(name) + lines([row, row | {"_ng_task_index": 78}]))
    line = len(played.rows(name)) - 1
    found = dict(places(played))[f"{name}:{line}"]
    assert found.startswith(f"rollout 77-0 is not in the plan {PLAN}, and 1 more rollout like it")
    said = played.resume(*CALM)
    assert said.code == 5
    assert f"{name}:{line}: rollout 77-0" in said.text


@pytest.mark.parametrize("rollout", [(), ("0", "0")])
def test_explaining_a_run_whose_files_are_damaged_tells_each_place_and_ends_with_5(played, rollout):
    (played.folder / PLAN).unlink()
    said = called(["eval", "explain", str(played.output), *rollout])
    assert said.code == 5
    assert f"{PLAN}: the run's plan is missing" in said.text
    told = called(["eval", "explain", str(played.output), *rollout, "--json"])
    assert [damage["place"].rpartition("/")[2] for damage in json.loads(told.out)["damage"]] == [
        place for place, _ in places(played)
    ]

"""Cases from the field about files that a death, an editor or a copy left torn, unended or empty."""

import pytest

from cases.played import (
    BATCH,
    FAILURES,
    LOCK,
    LOG,
    MANIFEST,
    METRICS,
    PLAN,
    RESULTS,
    Played,
    answering,
    ends,
    failing,
    key_of,
    lines_as_they_are,
    prompt_of,
    strict,
)
from stub import adding, serving

CALM = ["--concurrency", "1"]
UNSAFE = "+allow_unsafe_resume=true"
MANAGED = pytest.mark.parametrize("managed", [True, False], ids=["with manifest", "without"])


@pytest.fixture
def play(tmp_path):
    """Return what plays a run against a stub of its own."""
    with serving() as stub:
        yield lambda rows: Played(tmp_path, stub, rows)


def killed_in_second_line(played, name, more, *, managed):
    """Leave the folder as a death left it so many bytes into the second line of a file; return the first line."""
    if not managed:
        played.without_manifest()
    data = played.bytes_of(name)
    first = data[: ends(data)[0]]
    if managed:
        played.as_if_killed(name, len(first) + more)
    else:
        played.put(name, data[: len(first) + more])
    return first


@MANAGED
def test_rc_01_half_a_result_costs_only_the_rollout_that_was_being_written(play, managed):
    played = play(adding(3))
    played.run(*CALM)
    first = killed_in_second_line(played, RESULTS, 40, managed=managed)
    said = played.resume(*CALM)
    assert said.code == 0
    assert played.asked(3) == [(1, 0), (2, 0)]
    assert [key_of(row) for row in played.rows(RESULTS)] == [(0, 0), (1, 0), (2, 0)]
    assert played.bytes_of(RESULTS).startswith(first)
    assert f"{RESULTS}: 40 bytes" in said.text
    assert len(played.bytes_of(f"{RESULTS}.torn").rstrip(b"\n")) == 40


@MANAGED
def test_rc_01_half_a_failure_costs_only_the_rollout_that_was_being_written(play, managed):
    played = play(adding(3))
    played.stub.script = failing(1, 2)
    played.run(*CALM)
    first = killed_in_second_line(played, FAILURES, 40, managed=managed)
    played.stub.script = failing()
    said = played.resume(*CALM)
    assert said.code == 0
    assert played.asked(3) == [(1, 0), (2, 0)]
    assert len(played.rows(RESULTS)) == 3
    assert played.bytes_of(FAILURES).startswith(first)
    assert f"{FAILURES}: 40 bytes" in said.text


def test_rc_01_a_result_that_was_committed_and_is_gone_is_reported_and_never_silently_run_again(play):
    played = play(adding(3))
    played.run(*CALM)
    data = played.bytes_of(RESULTS)
    played.put(RESULTS, data[: ends(data)[0] + 40])
    said = played.resume(*CALM)
    assert said.code == 5
    assert f"{RESULTS}: " in said.text
    assert UNSAFE in said.text
    assert played.asked(3) == []
    assert played.resume(*CALM, UNSAFE).code == 0
    assert played.asked(3) == [(1, 0), (2, 0)]
    assert len(played.rows(RESULTS)) == 3


@MANAGED
@pytest.mark.parametrize("name", [RESULTS, FAILURES])
def test_rc_02_a_last_row_that_lacks_only_its_newline_is_work_that_is_done(play, name, managed):
    played = play(adding(3))
    played.stub.script = failing(2)
    played.run(*CALM)
    if not managed:
        played.without_manifest()
    before = played.bytes_of(name)
    told = played.status()
    played.put(name, before.removesuffix(b"\n"))
    assert played.status() == told
    played.stub.script = failing()
    said = played.resume(*CALM)
    assert said.code == 0
    assert played.asked(3) == [(2, 0)]
    assert len(played.rows(RESULTS)) == 3
    assert len(played.rows(FAILURES)) == 1
    assert played.bytes_of(name).startswith(before)
    assert f"{name}: the last line was whole" in said.text


@MANAGED
@pytest.mark.parametrize("inside", [1, 2])
def test_rc_05_a_cut_inside_a_character_is_a_half_row_like_any_other(play, inside, managed):
    played = play(adding(3))
    played.stub.script = answering("判決 — ok")
    played.run(*CALM)
    second = played.bytes_of(RESULTS).splitlines()[1]
    inside += second.index("決".encode())
    kept = killed_in_second_line(played, RESULTS, inside, managed=managed)
    code, told = played.status()
    assert (code, told["coverage"]["scored"], told["outstanding"]) == (3, 1, 2)
    said = played.resume(*CALM)
    assert said.code == 0
    assert f"{RESULTS}: {inside} bytes" in said.text
    assert played.asked(3) == [(1, 0), (2, 0)]
    assert played.bytes_of(RESULTS).startswith(kept)
    assert [row["text"] for row in played.rows(RESULTS)] == ["判決 — ok"] * 3


SEPARATORS = "first\u2028second\u0085third\u2029fourth"


def test_rc_07_separators_inside_text_end_no_line(play):
    rows = [row | {"note": SEPARATORS} for row in adding(2)]
    for row in rows:
        row["responses_create_params"]["input"] += SEPARATORS
    played = play(lines_as_they_are(rows))
    played.stub.script = answering(SEPARATORS)
    assert played.run(*CALM).code == 0
    before = played.bytes_of(RESULTS)
    (played.folder / METRICS).unlink()
    assert "2 of 2" in played.resume(*CALM).text
    assert played.asked(2) == []
    assert played.bytes_of(RESULTS) == before
    for row in played.rows(RESULTS):
        assert row["text"] == row["note"] == SEPARATORS
        assert prompt_of(row).endswith(SEPARATORS)
    assert all(SEPARATORS in prompt_of(row) for row in played.stub.requests)
    assert [len(body["verify_responses"]) for body in played.stub.aggregated] == [2, 2]
    assert {row["text"] for body in played.stub.aggregated for row in body["verify_responses"]} == {SEPARATORS}
    code, told = played.status()
    assert (code, told["coverage"]["scored"]) == (0, 2)


@pytest.fixture
def finished(play):
    """Two of three tasks are scored, and one failed for good."""
    played = play(adding(3))
    played.stub.script = failing(2, _ng_failure_terminal=True)
    assert played.run(*CALM).code == 0
    assert played.bytes_of(FAILURES)
    return played


@pytest.mark.parametrize("name", [RESULTS, FAILURES, MANIFEST, LOG, PLAN])
def test_rc_08_a_file_that_was_emptied_is_named_and_nothing_is_run_or_changed(finished, name):
    finished.put(name, b"")
    before = finished.files()
    said = finished.resume(*CALM)
    assert said.code == 5
    assert name in said.text
    assert finished.asked(3) == []
    assert finished.untouched_but(before, {LOCK})
    code, told = finished.status()
    assert code == 5
    assert any(name in f"{damage['place']}: {damage['what']}" for damage in told["damage"])
    assert all(":" in damage["place"] for damage in told["damage"] if name == LOG)


@pytest.mark.parametrize("name", [RESULTS, FAILURES, MANIFEST, LOG, PLAN])
def test_rc_08_a_fresh_run_never_takes_the_place_of_what_lies_beside_an_emptied_file(finished, name):
    finished.put(name, b"")
    before = finished.files()
    said = finished.run(*CALM)
    assert said.code == 1
    assert finished.asked(3) == []
    assert finished.untouched_but(before, {LOCK})


def test_rc_08_emptied_metrics_are_computed_again(finished):
    metrics = finished.bytes_of(METRICS)
    before = finished.files()
    finished.put(METRICS, b"")
    assert finished.status()[0] == 0
    said = finished.resume(*CALM)
    assert said.code == 0
    assert finished.asked(3) == []
    assert finished.bytes_of(METRICS) == metrics
    assert finished.untouched_but(before, {LOCK, MANIFEST, BATCH})


def test_rc_08_an_emptied_batch_status_is_made_again_by_the_next_session(play):
    played = play(adding(3))
    played.stub.script = failing(2)
    played.run(*CALM)
    played.put(BATCH, b"")
    before = played.files()
    assert played.status()[0] == 3
    played.stub.script = failing()
    assert played.resume(*CALM).code == 0
    assert played.asked(3) == [(2, 0)]
    assert strict(played.bytes_of(BATCH))
    assert all(played.bytes_of(name).startswith(before[name]) for name in (RESULTS, FAILURES, PLAN, LOG))


def test_rc_08_an_emptied_lock_is_held_by_nobody(finished):
    finished.put(LOCK, b"")
    before = finished.files()
    assert finished.status()[0] == 0
    assert finished.resume(*CALM).code == 0
    assert finished.asked(3) == []
    assert finished.untouched_but(before, {LOCK})


def test_rc_08_without_a_manifest_empty_results_are_nothing_done(finished):
    finished.without_manifest()
    finished.put(RESULTS, b"")
    failures = finished.bytes_of(FAILURES)
    assert finished.status()[0] == 3
    finished.stub.script = failing()
    assert finished.resume(*CALM).code == 0
    assert finished.asked(3) == [(0, 0), (1, 0)]
    assert finished.bytes_of(FAILURES) == failures


def test_rc_08_without_a_manifest_an_empty_sidecar_is_no_failures(finished):
    finished.without_manifest()
    finished.put(FAILURES, b"")
    results = finished.bytes_of(RESULTS)
    assert finished.status()[0] == 3
    finished.stub.script = failing()
    assert finished.resume(*CALM).code == 0
    assert finished.asked(3) == [(2, 0)]
    assert finished.bytes_of(RESULTS).startswith(results)

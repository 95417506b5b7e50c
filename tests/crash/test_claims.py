"""Each claim of the campaign can fail, and names what fails it."""

import json

import pytest

from crash import claims
from crash.claims import FAILURES, LOG, METRICS, PLAN, RESULTS, Witness
from crash.script import FAULTS, FAULTY_ATTEMPTS, Fault, fault_of, reward_of
from crash.write_stream import Stream, Tap, folder_after


def line(task, rollout=0, attempt=0, **more):
    row = {"_ng_task_index": task, "_ng_rollout_index": rollout, "_ng_attempt_index": attempt}
    return json.dumps(row | {"reward": reward_of(task, rollout)} | more).encode() + b"\n"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({RESULTS: b"a\n"}, {RESULTS: b"b\n"}, "r.jsonl changed"),
        ({FAILURES: b"a\nb\n"}, {FAILURES: b"a\n"}, "r_failures.jsonl changed"),
        ({LOG: b"a\n"}, {}, "r_manifest.log vanished"),
        ({RESULTS: b"a\nhal"}, {RESULTS: b"a\nb\n"}, "torn line are nowhere"),
        ({PLAN: b"a\n"}, {PLAN: b"b\n"}, "r_materialized_inputs.jsonl changed"),
    ],
)
def test_a_changed_byte_is_seen(before, after, said):
    (told,) = claims.only_appended(before, after, sent=True)
    assert said in told


@pytest.mark.parametrize(
    "after",
    [{RESULTS: b"a\nhalf\n"}, {RESULTS: b"a\nb\n", "r.jsonl.torn": b"hal\n"}, {RESULTS: b"a\nhal"}],
)
def test_a_torn_line_may_be_completed_or_put_aside(after):
    assert list(claims.only_appended({RESULTS: b"a\nhal"}, after, sent=True)) == []


def test_an_attempt_that_was_sent_twice_is_seen():
    assert list(claims.sent_once(Witness([(0, 0, 0), (0, 0, 1), (0, 0, 0)]))) == ["attempt (0, 0, 0) was sent 2 times"]


def test_an_attempt_that_was_sent_without_a_reservation_is_seen():
    files = {LOG: b'{"t":"reserve","a":[0,0,0,1,0,0],"sizes":[0,0]}\n'}
    (told,) = claims.sent_after_reservation(files, Witness([(0, 0, 0), (1, 0, 0), (1, 0, 1)]))
    assert "(1, 0, 1)" in told


def test_a_result_that_nobody_gave_is_seen():
    (told,) = claims.results_are_the_servers({RESULTS: line(0) + line(1)}, Witness([], scored=frozenset({(0, 0, 0)})))
    assert "(1, 0, 0)" in told


@pytest.mark.parametrize("rows", [line(0) + line(0, attempt=1), line(0, reward=0.3)])
def test_a_second_result_and_another_reward_are_seen(rows):
    assert len(list(claims.results_are_right({RESULTS: rows}))) == 1


def test_a_rollout_that_is_paid_for_again_is_seen():
    before = Witness([(0, 0, 0)])
    after = Witness([(0, 0, 0), (1, 0, 0), (0, 0, 1)])
    (told,) = claims.nothing_paid_twice({RESULTS: line(0)}, before.asked(), after)
    assert "(0, 0)" in told


def test_a_finished_reply_that_is_not_on_disk_is_seen():
    assert len(list(claims.finished_is_kept({RESULTS: line(0)}, [(0, 0, 0), (1, 0, 0)]))) == 1


def test_a_rollout_without_a_result_and_one_of_no_plan_are_seen():
    assert len(list(claims.all_scored({RESULTS: line(1)}, {(0, 0)}))) == 2


@pytest.mark.parametrize(
    ("name", "data"), [(RESULTS, b"{}\n[]\n"), (LOG, b"{\n"), (METRICS, b"[1,"), (claims.MANIFEST, b"")]
)
def test_what_is_no_json_is_seen(name, data):
    (told,) = claims.well_formed({name: data})
    assert name in told


def test_another_mean_is_seen():
    metrics = f'[{{"key_metrics": {{"mean/reward": {reward_of(0, 0)}}}}}]'.encode()
    good = {RESULTS: line(0), METRICS: metrics}
    assert list(claims.mean_is(good, reward_of(0, 0))) == []
    assert len(list(claims.mean_is(good, 0.3))) == 2


def test_faults_are_of_every_kind_and_stop():
    found = {fault_of(1, task, 0, attempt) for task in range(200) for attempt in range(FAULTY_ATTEMPTS)}
    assert found == {Fault.NONE, *FAULTS}
    assert {fault_of(1, task, 0, FAULTY_ATTEMPTS) for task in range(200)} == {Fault.NONE}


def test_a_write_stream_rebuilds_a_folder_after_any_step(tmp_path):
    stream = Stream()
    with Tap(tmp_path, stream).on():
        for text in ("one", "two"):
            with (tmp_path / "a").open("ab", buffering=0) as file:
                file.write(text.encode())
        (tmp_path / "b.tmp").write_text("whole")
        (tmp_path / "b.tmp").replace(tmp_path / "b")
        (tmp_path / "a").unlink()
    images = [folder_after(stream.until(steps)) for steps in range(stream.length + 1)]
    assert images[0] == {}
    assert {"a": b"onetw"} in images
    assert {"a": b"onetwo", "b.tmp": b"who"} in images
    assert {"a": b"onetwo", "b": b"whole"} in images
    assert images[-1] == {"b": b"whole"}

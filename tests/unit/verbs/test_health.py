"""Result files → the two reports of a health check, whoever works on them."""

import json
import os
import signal

import pytest

from evidence_rows import failed, line, row, with_trajectory, without_evidence
from rollbook.errors import InputError, LedgerError
from rollbook.health.checks import CHECK_IDS, mask_of
from rollbook.health.words import lines_of
from rollbook.verbs import health_lines
from rollbook.verbs.health import SUMMARY_NAME, VERDICTS_NAME, HealthCheckLeftError, check_health, workers_for
from rollbook.verbs.health_lines import line_index, parts_of, singles_of
from rollbook.verbs.health_lines import lines_of as text_of
from rollbook.verbs.health_pool import batches_of
from rollbook.verbs.health_worker import Worker, examined

THREE = [line(row(0)), line(without_evidence(1)), b'{"broken']


def written(path, lines, end=b"\n"):
    path.write_bytes(b"\n".join(lines) + end)
    return path


def many(folder):
    """Forty tasks of three repeats, not in order, some unwell, one twice, some unreadable, blank lines between."""
    lines = []
    for place in range(120):
        number = place * 47 % 120
        task, rollout = divmod(number, 3)
        record = with_trajectory(model_calls=[failed()]) if task % 5 == 0 else row(ng_trajectory=None)
        lines.append(line(record | {"_ng_task_index": task, "_ng_rollout_index": rollout}))
        lines += [b"not json"] if place % 50 == 0 else [b""] if place % 7 == 0 else []
    return written(folder / "rollouts.jsonl", [*lines, line(row(7, 1))])


def reports(folder):
    return (folder / SUMMARY_NAME).read_bytes(), (folder / VERDICTS_NAME).read_bytes()


def test_a_complete_trajectory_is_healthy_none_is_unobserved_and_broken_json_is_unhealthy(tmp_path):
    summary = check_health([written(tmp_path / "rollouts.jsonl", THREE)], tmp_path)
    told, verdicts = (tmp_path / SUMMARY_NAME).read_text(), (tmp_path / VERDICTS_NAME).read_text().splitlines()
    assert [json.loads(verdict)["verdict"] for verdict in verdicts] == ["healthy", "unobserved", "unhealthy"]
    assert (summary.healthy, summary.unhealthy, summary.unobserved) == (1, 1, 1)
    run, tasks = json.loads(told)["run"], json.loads(told)["tasks"]
    assert run["verdicts"] == {"healthy": 1, "unhealthy": 1, "unobserved": 1}
    assert list(tasks) == ["0", "1", "__unreadable_record__:input-0:line-3"]
    assert (run["artifacts"]["records"], run["artifacts"]["captures"]) == (3, 1)
    assert set(run["issues"]) == set(run["artifacts"]["coverage"]) == set(CHECK_IDS)
    assert run["artifacts"]["coverage"]["record_unreadable"] == {"evaluated": 3, "unobserved": 0, "ignored": 0}
    assert run["stats"]["tokens"] == {"prompt": 3, "completion": 2, "capture_prompt": 3, "capture_completion": 2}


def test_the_console_tells_the_counts_what_was_left_out_and_where_the_summary_is(tmp_path):
    path = written(tmp_path / "rollouts.jsonl", THREE)
    lines = lines_of(check_health([path], tmp_path, ignored=[" agent_turn_hollow ", "agent_turn_hollow"]))
    counts = "Rollout health: 3 checked, 1 healthy, 1 unhealthy, 1 unobserved ("
    assert lines[0].startswith(counts)
    assert lines[0].endswith(" (ignored: agent_turn_hollow)")
    assert lines[-1] == f"Health summary: {tmp_path / SUMMARY_NAME}"


@pytest.mark.parametrize(("records", "told"), [(THREE, True), (THREE[:1], False)])
def test_the_console_tells_what_would_make_a_record_observed_where_one_is_not(tmp_path, records, told):
    first = lines_of(check_health([written(tmp_path / "rollouts.jsonl", records)], tmp_path))[0]
    assert ("ng_trajectory or ng_model_call_capture, which its agent returns" in first) is told


def test_a_line_without_its_newline_at_the_end_is_checked_and_one_of_white_space_is_not(tmp_path):
    path = written(tmp_path / "rollouts.jsonl", [b"", b"  ", *THREE], end=b"")
    check_health([path], tmp_path)
    verdicts = (tmp_path / VERDICTS_NAME).read_text().splitlines()
    assert json.loads(verdicts[2])["_ng_task_index"] == "__unreadable_record__:input-0:line-5"


def test_no_records_are_a_summary_of_nothing(tmp_path):
    path = written(tmp_path / "rollouts.jsonl", [])
    assert check_health([path], tmp_path).records == 0
    assert json.loads((tmp_path / SUMMARY_NAME).read_bytes())["tasks"] == {}


def test_an_unknown_check_is_named_and_nothing_is_written(tmp_path):
    path = written(tmp_path / "rollouts.jsonl", THREE)
    with pytest.raises(InputError, match="no_such_check"):
        check_health([path], tmp_path, ignored=["no_such_check"])
    assert not (tmp_path / SUMMARY_NAME).exists()


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(LedgerError, match="absent"):
        check_health([tmp_path / "absent.jsonl"], tmp_path)


def test_several_files_are_one_check_and_their_unreadable_lines_are_told_apart(tmp_path):
    first = written(tmp_path / "a.jsonl", [line(row(0)), b"broken"])
    second = written(tmp_path / "b.jsonl", [b"broken", line(row(1))])
    check_health([first, second], tmp_path)
    tasks = json.loads((tmp_path / SUMMARY_NAME).read_bytes())["tasks"]
    assert list(tasks) == [
        "0",
        "1",
        "__unreadable_record__:input-0:line-2",
        "__unreadable_record__:input-1:line-1",
    ]


def test_every_verdict_has_what_was_told_of_its_own_record(tmp_path):
    names = [f"run:{task}" if task % 3 else f"{task}-0" for task in range(300)]
    records = [row(task, _ng_rollout_id=name) for task, name in enumerate(names)]
    check_health([written(tmp_path / "rollouts.jsonl", map(line, reversed(records)))], tmp_path)
    told = [json.loads(text)["rollout_id"] for text in (tmp_path / VERDICTS_NAME).read_bytes().splitlines()]
    assert told == names


def test_two_processes_write_the_bytes_that_one_writes(tmp_path):
    path = many(tmp_path)
    check_health([path], tmp_path, workers=1)
    alone = reports(tmp_path)
    check_health([path], tmp_path, workers=2)
    assert reports(tmp_path) == alone


def test_where_no_process_can_be_started_this_one_does_the_work(tmp_path):
    def start():
        raise OSError("no more processes")

    parts = list(parts_of([line_index(many(tmp_path))], 2, 0))
    assert list(batches_of(parts, 2, start)) == [examined(part) for part in parts]


def test_a_process_that_dies_is_replaced_and_its_lines_are_examined_again(tmp_path):
    started = []

    def start():
        started.append(Worker())
        if len(started) == 1:
            os.kill(started[0].pid, signal.SIGKILL)
        return started[-1]

    parts = list(parts_of([line_index(many(tmp_path))], 2, 0))
    records = [task for batch in batches_of(parts, 2, start) for task in memoryview(batch.tasks).cast("Q")]
    expected = [task for part in parts for task in memoryview(examined(part).tasks).cast("Q")]
    assert records == expected


class DiesOfPoison(Worker):
    def examine(self, part):
        if any(b"poison" in text for _, text in text_of(part)):
            os.kill(self.pid, signal.SIGKILL)
        return super().examine(part)


def test_a_line_of_which_processes_die_is_told_as_not_checked_and_its_neighbours_are_checked(tmp_path):
    path = written(tmp_path / "rollouts.jsonl", [line(row(0)), b'{"poison":1}', line(row(1))] * 3)
    (part,) = [part for part in parts_of([line_index(path)], 1, 0) if part.ordinal == 0]
    batches = list(batches_of([part], 2, DiesOfPoison))
    found = [memoryview(batch.flagged).cast("H").tolist() for batch in batches]
    assert found == [[0], [mask_of(["check_execution_error"])], [0]]


def test_the_lines_of_a_part_one_by_one_are_the_part(tmp_path):
    index = line_index(many(tmp_path))
    for part in parts_of([index], 1, 0):
        alone = [text for single in singles_of(part) for text in text_of(single)]
        assert alone == list(text_of(part))


@pytest.mark.parametrize(("lines", "workers", "size"), [(1, 8, 1), (100, 2, 13), (100_000, 8, 128)])
def test_a_part_is_a_quarter_of_each_process_s_share_and_128_lines_at_most(tmp_path, lines, workers, size):
    index = line_index(written(tmp_path / "r.jsonl", [b"{}"] * lines))
    parts = list(parts_of([index], workers, 0))
    assert parts[0].end - parts[0].start == 3 * size
    assert sum(part.end - part.start for part in parts) == 3 * lines


def test_little_work_is_done_without_a_process_of_its_own(tmp_path):
    one, two = (
        line_index(written(tmp_path / "1.jsonl", [b"{}"])),
        line_index(written(tmp_path / "2.jsonl", [b"{}"] * 9)),
    )
    assert [workers_for([one], 4), workers_for([two], None), workers_for([two], 4)] == [1, 1, 4]


def test_a_line_beyond_what_is_parsed_as_a_whole_is_read_without_its_evidence(tmp_path, monkeypatch):
    monkeypatch.setattr(health_lines, "PROJECTED_ROW_BYTES", 200)
    path = written(tmp_path / "rollouts.jsonl", [line(row(0)), line(without_evidence(1)), line(row(2))])
    summary = check_health([path], tmp_path)
    assert (summary.records, summary.unobserved, summary.unhealthy) == (3, 3, 0)


def test_the_reports_of_another_run_in_the_folder_are_not_written_over(tmp_path):
    check_health([written(tmp_path / "a.jsonl", THREE)], tmp_path)
    before = reports(tmp_path)
    other = check_health([written(tmp_path / "b.jsonl", THREE[:1])], tmp_path)
    assert reports(tmp_path) == before
    assert other.summary == tmp_path / f"b_{SUMMARY_NAME}"
    assert check_health([tmp_path / "a.jsonl"], tmp_path).summary == tmp_path / SUMMARY_NAME


@pytest.mark.parametrize("workers", [1, 2])
def test_a_check_that_is_left_writes_nothing_and_changes_nothing(tmp_path, workers):
    path = many(tmp_path)
    with pytest.raises(HealthCheckLeftError):
        check_health([path], tmp_path, workers=workers, is_left=lambda: True)
    assert [found.name for found in tmp_path.iterdir()] == [path.name]

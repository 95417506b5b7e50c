"""A run held for as long as somebody works on it."""

import pytest

from rollbook.api.rollout_store import RolloutStore
from rollbook.errors import LedgerError
from rollbook.ledger.rollout_record import indexed_records
from run_folder import SERVER_ERROR, RunFolder, replies
from saved_run import UNMANAGED, SavedRun, failed, killed, planned, stamped
from stub import adding, serving

FOUR = [planned(0, 0), planned(0, 1), planned(1, 0), planned(1, 1)]


@pytest.fixture
def run(tmp_path):
    return SavedRun(tmp_path / "run", FOUR, max_rollout_attempts=2, attempt_extension=1)


def fold_last(store, path):
    where, row = list(indexed_records(path))[-1]
    store.records.outcome(row, where)


def test_a_store_shows_the_run_that_it_holds(run):
    run.ran(0, 0)
    with RolloutStore(run.output) as store:
        assert (store.manifest.run_id, store.attempt_cap, store.attempt_extension) == ("r1", 3, 1)
        assert (store.records.disposition("0-0"), store.started_fresh) == ("completed", False)


def test_a_writer_keeps_other_writers_out_until_it_is_closed(run):
    with RolloutStore(run.output), pytest.raises(LedgerError), RolloutStore(run.output):
        pass
    with RolloutStore(run.output) as again:
        assert again.manifest is not None


def test_a_reader_neither_waits_nor_writes(run):
    run.ran(0, 0)
    with run.output.open("ab") as file:
        file.write(b'{"torn":')
    before = {path: path.read_bytes() for path in run.output.parent.iterdir()}
    with RolloutStore(run.output, read_only=True) as reader:
        assert reader.records.coverage()["scored"] == 1
    assert {path: path.read_bytes() for path in run.output.parent.iterdir()} == before


def test_a_reader_sees_a_held_run_s_attempts_in_flight(run):
    run.reserves((0, 0, 0))
    with RolloutStore(run.output), RolloutStore(run.output, read_only=True) as reader:
        assert len(reader.records.pending(3)) == 3
    with RolloutStore(run.output, read_only=True) as later:
        assert len(later.records.pending(3)) == 4


def test_a_reader_sees_the_run_as_it_was_when_it_was_opened(run):
    run.ran(0, 0)
    with RolloutStore(run.output, read_only=True) as reader:
        run.ran(0, 1)
        assert (reader.records.coverage()["scored"], reader.outcomes_recorded) == (1, 0)


def test_a_writer_mends_the_tail_that_a_death_left(run):
    run.ran(0, 0)
    with run.output.open("ab") as file:
        file.write(b'{"torn":')
    with RolloutStore(run.output) as store:
        assert store.records.coverage()["scored"] == 1
    assert run.output.read_bytes().endswith(b"}\n")


def test_a_run_that_cannot_be_read_is_let_go_of(run):
    run.result(0, 0)
    with pytest.raises(LedgerError, match="never handed"), RolloutStore(run.output):
        pass
    run.reserves((0, 0, 0))
    with RolloutStore(run.output) as store:
        assert store.records.disposition("0-0") == "completed"


def test_a_run_is_fresh_until_something_was_handed_out(run, tmp_path):
    with RolloutStore(run.output) as store:
        assert store.started_fresh
    run.reserves((0, 0, 0))
    with RolloutStore(run.output) as store:
        assert not store.started_fresh
    with RolloutStore(tmp_path / "new" / "r.jsonl") as store:
        assert (store.manifest, store.started_fresh) == (None, True)
    assert not (tmp_path / "new").exists()


def test_a_folder_without_a_manifest_is_named_and_not_taken_for_a_fresh_run(tmp_path):
    run = SavedRun(tmp_path, FOUR, managed=False).result(0, 0, **UNMANAGED)
    with RolloutStore(run.output, read_only=True) as store:
        assert (store.manifest, store.started_fresh) == (None, False)
        with pytest.raises(LedgerError, match="no run with a manifest"):
            _ = store.records


def test_what_was_recorded_since_it_was_opened_is_counted_and_interruptions_are_no_progress(run):
    run.ran(0, 0).reserves((0, 1, 0), (1, 0, 0), (1, 1, 0))
    with RolloutStore(run.output) as store:
        assert (store.outcomes_recorded, store.made_progress) == (0, False)
        run.failure(0, 1, **killed())
        fold_last(store, run.paths.failures)
        run.failure(1, 0, **failed() | {"_ng_failure_delivery": "not_sent"})
        fold_last(store, run.paths.failures)
        assert (store.outcomes_recorded, store.made_progress) == (2, False)
        run.failure(1, 1)
        fold_last(store, run.paths.failures)
        assert (store.outcomes_recorded, store.progress_outcomes_recorded, store.made_progress) == (3, 1, True)


@pytest.mark.parametrize(
    ("more", "selected"),
    [
        (lambda run: run, True),
        (lambda run: run.failed(1, 0), True),
        (lambda run: run.failed(0, 0, 1), False),
        (lambda run: run.failed(1, 0).failed(1, 0, 1), False),
        (lambda run: run.failed(1, 0, **killed()), False),
        (lambda run: run.failed(1, 0).reserves((1, 0, 1)), False),
    ],
)
def test_plain_rows_are_what_stands_only_when_none_is_superseded_or_omitted(run, more, selected):
    more(run.ran(0, 0).ran(0, 1))
    with RolloutStore(run.output, read_only=True) as store:
        assert store.raw_outcomes_are_selected() is selected


def test_a_run_is_opened_by_any_of_its_names(run, tmp_path):
    link = tmp_path / "latest.jsonl"
    link.symlink_to(run.output)
    for path in (run.paths.failures, run.paths.materialized_inputs, link):
        with RolloutStore(path) as store:
            assert store.output == run.output


def test_a_writer_refuses_a_run_whose_history_lies_in_two_places(run, tmp_path):
    link = tmp_path / "latest.jsonl"
    link.symlink_to(run.output)
    (tmp_path / "latest_failures.jsonl").write_bytes(b"")
    with pytest.raises(LedgerError, match="part of its history lies elsewhere"), RolloutStore(link):
        pass


def test_a_row_is_checked_before_it_is_written(run):
    run.reserves((0, 0, 0))
    with RolloutStore(run.output) as store:
        assert store.records.check_outcome(stamped(0, 0, 0, {})) == ("0-0", 0)
        with pytest.raises(LedgerError, match="never handed out"):
            store.records.check_outcome(stamped(0, 0, 1, {}))


def test_a_run_that_was_collected_is_read_as_it_was_and_agrees_with_its_status(tmp_path):
    folder = RunFolder(tmp_path).asks(adding(3))
    with serving() as stub:
        stub.script = replies({(1, 0, 0): SERVER_ERROR, (2,): SERVER_ERROR})
        folder.run(stub)
        folder.resume(stub)
    with RolloutStore(folder.output, read_only=True) as store:
        records = store.records
        assert {name: records.disposition(name) for name in records.expected} == {
            "0-0": "completed",
            "1-0": "completed",
            "2-0": "failed",
        }
        assert (dict(records.latest), dict(records.attempt_counts)) == (
            {"0-0": 0, "1-0": 1, "2-0": 1},
            {"1-0": 1, "2-0": 2},
        )
        assert len(records.pending(store.attempt_cap)) == folder.status()["outstanding"] == 1
        assert records.pending(store.attempt_cap)[0]["_ng_attempt_index"] == 2
        assert [row["_ng_run_id"] for row in records.selected("completed")] == [store.manifest.run_id] * 2
        assert not store.raw_outcomes_are_selected()

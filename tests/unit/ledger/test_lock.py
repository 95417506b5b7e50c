"""One writer per run: real processes where processes matter, a table where the judgement does."""

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from rollbook.errors import LedgerError
from rollbook.ledger.lock import RunLock, holder_of

HOLD = """
import sys
from pathlib import Path
from rollbook.errors import LedgerError
from rollbook.ledger.lock import RunLock
lock = RunLock(Path(sys.argv[1]), now=lambda: 1_700_000_000.0)
print("ready", flush=True)
sys.stdin.readline()
try:
    lock.acquire()
    print("holds", flush=True)
except LedgerError as error:
    print(error, flush=True)
sys.stdin.readline()
lock.release()
"""
ELSEWHERE = [{"host": "far"}, {"boot": "another"}, {"inode": 1}, {"started": ""}]
THIS_HOST = os.uname().nodename


@contextmanager
def process(path):
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "ready\n"
            yield child
        finally:
            child.kill()


def tell(child):
    child.stdin.write("\n")
    child.stdin.flush()


@contextmanager
def holding(path):
    with process(path) as child:
        tell(child)
        assert child.stdout.readline() == "holds\n"
        yield child


def killed_and_not_reaped(child):
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)


@pytest.fixture
def path(tmp_path):
    return tmp_path / ".r.lock"


@pytest.fixture
def waits():
    return []


@pytest.fixture
def lock(path, waits):
    locks = []

    def lock(**options):
        locks.append(RunLock(path, now=lambda: 1_700_000_000.0, sleep=waits.append, **options))
        return locks[-1]

    yield lock
    for each in locks:
        each.release()


@pytest.fixture
def flock(monkeypatch):
    """Replace the system call: a number fails with it, 0 grants whatever is asked."""

    def flock(*answers):
        left = list(answers)

        def answer(descriptor, mode):
            number = left.pop(0) if len(left) > 1 else left[0]
            if number:
                raise OSError(number, os.strerror(number))

        monkeypatch.setattr(fcntl, "flock", answer)

    return flock


def open_files():
    return len(list(Path("/proc/self/fd").iterdir()))


def written(path):
    return json.loads(path.read_bytes())


def rewritten(path, **changes):
    path.write_bytes(json.dumps({**written(path), **changes}).encode() + b"\n")


def test_of_four_processes_that_begin_at_once_exactly_one_holds_the_run(path):
    with process(path) as a, process(path) as b, process(path) as c, process(path) as d:
        for child in (a, b, c, d):
            tell(child)
        answers = [child.stdout.readline() for child in (a, b, c, d)]
    assert answers.count("holds\n") == 1
    assert all("is writing this run" in answer for answer in answers if answer != "holds\n")


def test_a_refusal_names_the_process_its_host_since_when_the_file_and_what_to_do(path, lock, waits):
    with holding(path) as child, pytest.raises(LedgerError) as refused:
        lock().acquire()
    message = str(refused.value)
    assert message.startswith(f"{path}: pid {child.pid} on {THIS_HOST} (since 2023-11-14T22:13:20+00:00) is writing")
    assert "wait for it" in message
    assert "another --output" in message
    assert "--take-over" not in message
    assert sum(waits) == pytest.approx(1.0)


def test_a_lock_that_was_released_can_be_taken_and_its_file_stays(path, lock):
    first = lock()
    first.acquire()
    first.release()
    assert path.exists()
    assert holder_of(path) is None
    lock().acquire()


def test_a_holder_that_was_killed_is_gone_even_before_its_parent_has_noticed(path, lock):
    with holding(path) as child:
        killed_and_not_reaped(child)
        assert holder_of(path) is None
        second = lock()
        second.acquire()
        second.check()
        assert written(path)["pid"] == os.getpid()


def test_one_process_cannot_take_a_run_twice(path, lock):
    first = lock()
    first.acquire()
    with pytest.raises(LedgerError, match=f"pid {os.getpid()} "):
        lock().acquire()
    with pytest.raises(LedgerError, match="is writing this run"):
        first.acquire()
    first.check()


def test_a_probe_that_holds_the_lock_for_a_moment_keeps_no_writer_out(path):
    path.touch()
    with path.open() as probe:
        fcntl.flock(probe, fcntl.LOCK_SH)
        lock = RunLock(path, now=lambda: 0.0, sleep=lambda _: fcntl.flock(probe, fcntl.LOCK_UN))
        lock.acquire()
        lock.check()
        lock.release()


def test_a_probe_names_who_holds_the_run_and_leaves_the_lock_with_them(path, lock):
    with holding(path) as child:
        holders = [holder_of(path) for _ in range(3)]
        assert {(holder.pid, holder.host) for holder in holders} == {(child.pid, THIS_HOST)}
        with pytest.raises(LedgerError):
            lock().acquire()


def test_two_probes_at_once_do_not_take_each_other_for_a_writer(path):
    path.touch()
    with path.open() as probe:
        fcntl.flock(probe, fcntl.LOCK_SH)
        assert holder_of(path) is None


def test_a_probe_of_a_run_that_never_had_a_lock_finds_nobody_and_creates_nothing(path):
    assert holder_of(path) is None
    assert holder_of(path / "below") is None
    assert list(path.parent.iterdir()) == []


def test_a_holder_that_has_not_written_its_name_yet_is_a_holder_without_a_name(path, lock):
    with path.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert holder_of(path).pid == 0
        with pytest.raises(LedgerError, match="another process is writing this run"):
            lock().acquire()


def test_a_lock_that_outlives_who_is_written_in_it_is_not_said_to_be_theirs(path, lock):
    with holding(path) as child, path.open() as other:
        killed_and_not_reaped(child)
        fcntl.flock(other, fcntl.LOCK_EX)
        assert holder_of(path).pid == 0
        with pytest.raises(LedgerError, match=f"pid {child.pid} on .* has ended, but the lock of this run is held"):
            lock().acquire()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"token":""}\n', b"\xff\n", b"[" * 4096, b"0" * 5000])
def test_rc_08_an_empty_or_unreadable_lock_file_is_held_by_nobody(path, lock, flock, content):
    for answer in (0, errno.ENOSYS):
        path.write_bytes(content)
        assert holder_of(path) is None
        flock(answer)
        assert holder_of(path) is None
        taken = lock()
        taken.acquire()
        taken.check()
        assert path.read_bytes().find(b"\n") == path.stat().st_size - 1
        taken.release()


def test_a_writer_whose_token_was_replaced_learns_it_from_its_next_check(path, lock):
    first = lock()
    first.acquire()
    first.check()
    rewritten(path, token="somebody else", pid=4242, host="far")
    with pytest.raises(LedgerError, match=r"pid 4242 on far .* took over this run; nothing more is written"):
        first.check()
    first.release()
    assert written(path)["token"] == "somebody else"


def test_a_writer_whose_lock_file_was_deleted_or_emptied_learns_it_from_its_next_check(path, lock):
    first = lock()
    first.acquire()
    path.write_bytes(b"")
    with pytest.raises(LedgerError, match="took over this run; nothing more is written"):
        first.check()
    path.unlink()
    with pytest.raises(LedgerError, match=f"{path}: .*can no longer be read: No such file"):
        first.check()
    second = lock()
    second.acquire()
    with pytest.raises(LedgerError, match=f"pid {os.getpid()} .*took over"):
        first.check()
    first.release()
    second.check()


def test_a_lock_on_a_file_that_is_deleted_while_one_waits_for_it_is_not_taken_for_the_lock(path):
    first = RunLock(path, now=lambda: 0.0)
    first.acquire()
    second = RunLock(path, now=lambda: 0.0, sleep=lambda _: (path.unlink(missing_ok=True), first.release()))
    second.acquire()
    assert written(path)["token"] == second.token
    second.check()
    second.release()


def test_a_lock_that_is_not_held_does_not_pass_the_check(path, lock):
    never, released = lock(), lock()
    released.acquire()
    released.release()
    for each in (never, released):
        with pytest.raises(LedgerError, match="does not hold the run"):
            each.check()


@pytest.mark.parametrize("answer", [errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL])
def test_where_locks_do_not_work_a_living_holder_of_this_host_is_refused(path, lock, flock, answer):
    with holding(path) as child:
        flock(answer)
        assert holder_of(path).pid == child.pid
        for take_over in (False, True):
            with pytest.raises(LedgerError, match=f"pid {child.pid} .* is writing this run"):
                lock(take_over=take_over).acquire()


def test_where_locks_do_not_work_a_dead_holder_of_this_host_is_replaced_with_one_warning(path, lock, flock):
    with holding(path) as child:
        killed_and_not_reaped(child)
        flock(errno.ENOSYS)
        assert holder_of(path) is None
        second = lock()
        second.acquire()
    second.check()
    assert second.warning.startswith(f"{path}: file locks do not work on this file system (Function not implemented)")


def test_a_pid_that_another_process_has_now_is_not_the_holder(path, lock, flock):
    with holding(path):
        rewritten(path, started="1")
        flock(errno.ENOSYS)
        assert holder_of(path) is None
        lock().acquire()


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
def test_where_locks_do_not_work_a_holder_out_of_sight_is_replaced_only_when_asked(path, lock, flock, elsewhere):
    with holding(path) as child:
        flock(errno.ENOLCK)
        rewritten(path, **elsewhere)
        assert holder_of(path).pid == child.pid
        with pytest.raises(LedgerError) as refused:
            lock().acquire()
        assert all(words in str(refused.value) for words in (str(path), "No locks available", "--take-over"))
        taken = lock(take_over=True)
        taken.acquire()
        taken.check()


@pytest.mark.parametrize("elsewhere", ELSEWHERE)
def test_where_locks_work_what_the_file_says_of_elsewhere_keeps_nobody_out(path, lock, elsewhere):
    with holding(path) as child:
        killed_and_not_reaped(child)
        rewritten(path, **elsewhere)
        assert holder_of(path) is None
        taken = lock()
        taken.acquire()
    assert taken.warning is None


def test_a_lock_that_is_granted_to_everybody_does_not_hide_a_living_holder(path, lock, flock):
    with holding(path) as child:
        flock(0)
        assert holder_of(path).pid == child.pid
        with pytest.raises(LedgerError, match=f"pid {child.pid} .* is writing this run"):
            lock().acquire()


def test_a_copied_folder_is_not_held_by_whoever_writes_the_original(path, lock):
    with holding(path) as child:
        copy = path.with_name(".copy.lock")
        copy.write_bytes(path.read_bytes())
        assert holder_of(copy) is None
        assert holder_of(path).pid == child.pid
        copied = RunLock(copy, now=lambda: 0.0)
        copied.acquire()
        copied.release()


def test_of_two_that_wrote_their_tokens_at_once_the_earlier_one_yields(path, flock):
    flock(errno.ENOSYS)
    lock = RunLock(path, now=lambda: 0.0, sleep=lambda _: rewritten(path, token="the later one"))
    with pytest.raises(LedgerError, match="took over this run"):
        lock.acquire()
    assert lock.token == ""
    assert written(path)["token"] == "the later one"


def test_a_probe_opens_a_stale_handle_again_once(path, lock, flock):
    lock().acquire()
    flock(errno.ESTALE, errno.ENOSYS)
    assert holder_of(path).pid == os.getpid()
    flock(errno.ESTALE)
    with pytest.raises(LedgerError, match="Stale file handle"):
        holder_of(path)


def test_a_lock_file_that_cannot_be_made_is_named(tmp_path):
    missing = tmp_path / "none" / ".r.lock"
    with pytest.raises(LedgerError, match=f"{missing}: .*No such file.*another --output"):
        RunLock(missing, now=lambda: 0.0).acquire()


def test_refused_probed_and_released_locks_leave_no_file_open(path, lock):
    taken, before = lock(), open_files()
    taken.acquire()
    with pytest.raises(LedgerError):
        lock().acquire()
    holder_of(path)
    taken.check()
    taken.release()
    assert open_files() <= before


def test_a_child_that_outlives_a_release_does_not_keep_the_lock(path, lock):
    first = lock()
    first.acquire()
    child = os.fork()
    if child == 0:
        signal.pause()
    first.release()
    try:
        lock().acquire()
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

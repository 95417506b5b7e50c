"""Bytes that no writer of ours leaves: each is named, file and line, and the rest is read."""

import pytest

from rollbook.ledger.history import prefixes, read_history
from rollbook.ledger.paths import RunPaths

PLANNED = b'{"_ng_task_index":%d,"_ng_rollout_index":0,"agent_ref":{"name":"adder"}}\n'
RESULT = (
    b'{"_ng_task_index":%d,"_ng_rollout_index":0,"agent_ref":{"name":"adder"},"_ng_run_id":"r",'
    b'"_ng_environment_server":"s","reward":1.0,"response":{"usage":{"input_tokens":7}}}\n'
)
FAILURE = b'{"_ng_task_index":0,"_ng_rollout_index":0,"_ng_run_id":"r","_ng_failure_class":"agent_run_error"}\n'
LOG = b'{"t":"open","session":1,"run_id":"r","at":"2026-09-20T10:00:00Z","sizes":[0,0]}\n' + b"".join(
    b'{"t":"reserve","a":[%d,0,0],"sizes":[0,0]}\n' % task for task in range(3)
)


@pytest.fixture
def paths(tmp_path):
    """Lay out a run of three scored rollouts."""
    paths = RunPaths(tmp_path / "r.jsonl")
    paths.materialized_inputs.write_bytes(b"".join(PLANNED % task for task in range(3)))
    paths.output.write_bytes(b"".join(RESULT % task for task in range(3)))
    paths.manifest_log.write_bytes(LOG)
    return paths


def changed(path, old, new, line):
    lines = path.read_bytes().splitlines(keepends=True)
    assert old in lines[line - 1]
    lines[line - 1] = lines[line - 1].replace(old, new)
    path.write_bytes(b"".join(lines))
    return f"{path}:{line}: "


def history_of(paths, *, with_tokens):
    damage = []
    return read_history(paths, prefixes(paths) if with_tokens else None, damage.append), list(map(str, damage))


@pytest.mark.parametrize("with_tokens", [False, True])
@pytest.mark.parametrize("line", [1, 2])
@pytest.mark.parametrize("agent", [b'"ad\xffder"', b'"\xed\xa0\x80"', b'"\xc0\xaf"'])
@pytest.mark.parametrize("file", ["output", "materialized_inputs"])
def test_an_agent_that_is_no_utf_8_is_named_by_its_line(paths, file, agent, line, with_tokens):
    where = changed(getattr(paths, file), b'"adder"', agent, line)
    history, damage = history_of(paths, with_tokens=with_tokens)
    assert [told for told in damage if told.startswith(where)] == damage
    assert len(damage) == 1
    assert history.standings.records == (2 if file == "output" else 3)
    assert history.plan.rollouts == (3 if file == "output" else 2)


@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (1, b'"session":1', b'"session":-1'),
        (1, b'"sizes":[0,0]', b'"sizes":[0,-1]'),
        (2, b'"sizes":[0,0]', b'"sizes":[-5,0]'),
        (2, b'"a":[0,0,0]', b'"a":[0,-1,0]'),
        (2, b'"a":[0,0,0]', b'"a":[0,4294967296,0]'),
        (2, b'"a":[0,0,0]', b'"a":[0,0,1e400]'),
    ],
)
def test_a_number_that_no_log_holds_is_named_by_its_line(paths, line, old, new):
    where = changed(paths.manifest_log, old, new, line)
    _, damage = history_of(paths, with_tokens=True)
    assert damage[0].startswith(where)


@pytest.mark.parametrize("with_tokens", [False, True])
def test_a_folder_in_the_place_of_the_manifest_is_named(paths, with_tokens):
    paths.manifest.mkdir()
    history, damage = history_of(paths, with_tokens=with_tokens)
    assert [told.partition(": ")[0] for told in damage] == [str(paths.manifest)]
    assert history.manifest is None
    assert history.standings.records == 3


@pytest.mark.parametrize("with_tokens", [False, True])
@pytest.mark.parametrize("file", ["output", "failures", "materialized_inputs"])
@pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80", b"\xc3"])
def test_a_line_that_is_no_utf_8_is_damaged_though_nobody_decides_by_what_is_not(paths, file, text, with_tokens):
    path = getattr(paths, file)
    paths.failures.write_bytes(FAILURE)
    whole = path.read_bytes()
    line = whole.count(b"\n")
    at = whole.rstrip().rfind(b"}")
    path.write_bytes(whole[:at] + b',"note":"' + text + b'"' + whole[at:])
    _, damage = history_of(paths, with_tokens=with_tokens)
    assert any(told.startswith(f"{path}:{line}: ") and "utf-8" in told for told in damage)


@pytest.mark.parametrize("usage", [b'{"input_tokens":1e400}', b"[1e400]"])
def test_a_row_is_a_record_whether_or_not_what_it_says_of_tokens_can_be_read(paths, usage):
    changed(paths.output, b'{"input_tokens":7}', usage, 2)
    told = history_of(paths, with_tokens=True)
    for history, damage in (told, history_of(paths, with_tokens=False)):
        assert (history.standings.records, damage) == (3, [])
    assert told[0].tokens.counts() == {"input_tokens": 14}


def test_the_run_that_is_laid_out_here_is_sound(paths):
    history, damage = history_of(paths, with_tokens=True)
    assert (damage, history.standings.records) == ([], 3)

"""Files that appear whole: what a process that died left behind goes, and what somebody writes stays."""

from pathlib import Path

from rollbook.ledger.whole_file import WholeFile, whole_file


def _hidden(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def test_what_a_dead_process_left_goes_with_the_next_file_of_that_path(tmp_path: Path) -> None:
    (tmp_path / ".o_coverage.json.a1b2c3d4.tmp").write_bytes(b"[")
    (tmp_path / ".o_other.json.a1b2c3d4.tmp").write_bytes(b"[")

    with whole_file(tmp_path / "o_coverage.json") as file:
        file.write(b"{}")

    assert _hidden(tmp_path) == [".o_other.json.a1b2c3d4.tmp"]
    assert (tmp_path / "o_coverage.json").read_bytes() == b"{}"


def test_a_file_that_somebody_else_writes_stays_until_it_is_in_place(tmp_path: Path) -> None:
    path = tmp_path / "o.json"
    first = WholeFile(path)
    first.file.write(b"first")
    with whole_file(path) as file:
        file.write(b"second")
    first.seal()
    with whole_file(path) as file:
        file.write(b"third")
    first.place()

    assert (path.read_bytes(), _hidden(tmp_path)) == (b"first", [])


def test_what_was_given_up_leaves_no_trace(tmp_path: Path) -> None:
    making = WholeFile(tmp_path / "o.json")
    making.discard()
    making.discard()

    assert list(tmp_path.iterdir()) == []

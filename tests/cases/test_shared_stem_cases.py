"""Cases about an output whose files are those of another run beside it."""

import pytest

from cases.played import BATCH, FAILURES, LOG, MANIFEST, METRICS, PLAN, RESULTS, Played, called
from stub import adding, serving


@pytest.fixture
def played(tmp_path):
    """A run that is complete."""
    with serving() as stub:
        played = Played(tmp_path, stub, adding(2))
        assert played.run().code == 0
        yield played


def other(played, name, *flags):
    """Run to another output beside the run."""
    words = played.words(*flags)
    words[words.index("-o") + 1] = str(played.folder / name)
    return called(words)


@pytest.mark.parametrize("flags", [(), ("--overwrite",), ("--resume",)], ids=["fresh", "overwrite", "resume"])
@pytest.mark.parametrize(
    "name", [FAILURES, PLAN, MANIFEST, LOG, METRICS, BATCH, f"{RESULTS}.torn", ".r.lock", "r.json", "r"]
)
def test_an_output_that_is_a_file_of_another_run_or_has_its_stem_is_refused(played, name, flags):
    before, asked = played.files(), len(played.stub.requests)
    said = other(played, name, *flags)
    assert said.code == 1
    assert str(played.output) in said.text.replace(" ", "")
    assert "another --output" in said.text
    assert played.files() == before
    assert len(played.stub.requests) == asked


def test_an_output_of_which_a_companion_is_the_output_of_another_run_is_refused(played):
    assert other(played, "s_failures.jsonl").code == 0
    before = played.files()
    said = other(played, "s.jsonl")
    assert said.code == 1
    assert "s_failures.jsonl" in said.text
    assert played.files() == before


def test_a_run_whose_output_has_no_usual_name_goes_on_under_it(played):
    assert other(played, "s.json").code == 0
    (played.folder / "s.jsonl").write_bytes(b"")
    assert other(played, "s.json", "--resume").code == 0
    assert other(played, "s.jsonl", "--resume").code == 1


def test_a_run_all_of_whose_files_were_renamed_goes_on_under_its_new_name(played):
    for path in list(played.folder.iterdir()):
        path.rename(path.with_name(path.name.replace("r", "s", 1)))
    assert other(played, "s.jsonl", "--resume").code == 0
    assert other(played, "s.json", "--resume").code == 1


def test_a_stem_that_only_begins_alike_is_nobodys(played):
    assert other(played, "r_2.jsonl").code == 0
    assert other(played, "r.2.jsonl").code == 0

"""What counts as a rollout's work."""

import pytest

from rollbook.inputs.deliverables import IGNORE_FILES, is_deliverable


@pytest.mark.parametrize("name", sorted(IGNORE_FILES))
def test_what_a_run_keeps_for_itself_is_no_work(tmp_path, name):
    (tmp_path / name).write_text("{}", encoding="utf-8")
    assert not is_deliverable(tmp_path / name)


def test_a_file_is_work_and_a_folder_or_nothing_is_none(tmp_path):
    (tmp_path / "report.md").write_text("# findings", encoding="utf-8")
    assert is_deliverable(tmp_path / "report.md")
    assert is_deliverable(str(tmp_path / "report.md"))
    assert not is_deliverable(tmp_path)
    assert not is_deliverable(tmp_path / "missing.md")

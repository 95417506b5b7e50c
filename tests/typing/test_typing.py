"""What a caller writes against the public names passes mypy, strictly."""

import re
from pathlib import Path

import pytest
from mypy import api

from architecture.source_tree import REPOSITORY

HERE = Path(__file__).parent
OPTIONS = [f"--config-file={REPOSITORY / 'pyproject.toml'}", "--strict", "--no-error-summary"]


def complaints(*files: Path) -> str:
    said, problems, _ = api.run([*OPTIONS, *map(str, files)])
    return said + problems


@pytest.fixture(scope="module")
def tutorial_files(tmp_path_factory):
    text = (REPOSITORY / "docs" / "tutorial.md").read_text(encoding="utf-8")
    folder = tmp_path_factory.mktemp("typed_tutorial")
    for path, code in re.findall(r"^```python (\S+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
        (folder / f"{Path(path).parent.name}.py").write_text(code, encoding="utf-8")
    return sorted(folder.glob("*.py"))


def test_code_that_callers_write_passes_mypy(tutorial_files):
    assert len(tutorial_files) == 2
    assert complaints(HERE / "public_names.py", *tutorial_files) == ""


def test_a_wrong_type_is_a_complaint(tmp_path):
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from rollbook import capture_key\n\nnumber: int = capture_key('3-0', 1)\n")
    assert "Incompatible types" in complaints(wrong)

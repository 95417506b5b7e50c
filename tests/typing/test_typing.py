"""What a caller writes against the public names passes mypy, strictly."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from architecture.source_tree import REPOSITORY

HERE = Path(__file__).parent
OPTIONS = [f"--config-file={REPOSITORY / 'pyproject.toml'}", "--strict", "--no-error-summary"]


def complaints(*files: Path) -> str:
    """Return what mypy says, in a process of its own: what it keeps in memory ends with it."""
    command = [sys.executable, "-m", "mypy", *OPTIONS, *map(str, files)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    return told.stdout + told.stderr


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

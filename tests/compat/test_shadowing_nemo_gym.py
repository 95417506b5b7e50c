"""Where NeMo Gym itself is installed, the alias is neither installed nor imported."""

import os
import subprocess
import sysconfig
import venv
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
COMPAT = REPOSITORY / "compat" / "nemo_gym"
A_BUILD = """
import runpy
hook = runpy.run_path("refuse_to_shadow.py")["RefuseToShadow"]()
hook.initialize("standard", {})
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("with_nemo_gym")
    venv.create(folder, symlinks=True)
    return folder


def purelib(environment: Path) -> Path:
    return Path(sysconfig.get_path("purelib", "venv", {"base": str(environment), "platbase": str(environment)}))


def ended(environment: Path, code: str, *path: Path) -> subprocess.CompletedProcess[str]:
    variables = os.environ | {"PYTHONPATH": os.pathsep.join(str(folder) for folder in path)}
    command = [str(environment / "bin" / "python"), "-c", code]
    return subprocess.run(command, cwd=COMPAT, env=variables, capture_output=True, text=True, check=False)


def imported(environment: Path) -> subprocess.CompletedProcess[str]:
    return ended(environment, "import nemo_gym", COMPAT / "src", REPOSITORY / "src")


def built(environment: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    """Run the build's own check, with a builder that has nothing but the name that the check derives from."""
    place = tmp_path / "hatchling" / "builders" / "hooks" / "plugin"
    place.mkdir(parents=True)
    (place / "interface.py").write_text("class BuildHookInterface: ...\n")
    return ended(environment, A_BUILD, tmp_path)


def test_it_is_imported_and_built_where_nemo_gym_is_not_installed(environment, tmp_path):
    assert (imported(environment).returncode, built(environment, tmp_path).returncode) == (0, 0)


@pytest.fixture
def nemo_gym_installed(environment):
    folder = purelib(environment) / "nemo_gym-0.7.0.dist-info"
    folder.mkdir()
    yield environment
    folder.rmdir()


def test_an_import_beside_nemo_gym_is_an_error_that_says_what_to_type(nemo_gym_installed):
    done = imported(nemo_gym_installed)
    assert done.returncode == 1
    assert "nemo_gym-0.7.0.dist-info" in done.stderr
    assert "pip uninstall nemo-gym" in done.stderr


def test_a_build_beside_nemo_gym_ends_with_what_to_type(nemo_gym_installed, tmp_path):
    done = built(nemo_gym_installed, tmp_path)
    assert done.returncode == 1
    assert "pip uninstall nemo-gym" in done.stderr

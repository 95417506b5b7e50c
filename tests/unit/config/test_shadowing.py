"""Two installed packages of one import name are refused, in words that say how to keep one."""

from pathlib import Path

import pytest

from rollbook import ShadowedPackageError, refuse_to_shadow


@pytest.mark.parametrize(
    "folder", ["nemo_gym-0.7.0.dist-info", "nemo.gym-1.dist-info", "Nemo_Gym-0.7.0.egg-info", "nemo_gym.egg-info"]
)
def test_an_installed_distribution_is_refused_whatever_its_spelling(tmp_path: Path, folder: str):
    (tmp_path / folder).mkdir()
    with pytest.raises(ImportError, match=folder):
        refuse_to_shadow("nemo-gym", "rollbook-nemo-gym", [str(tmp_path)])


def test_the_message_says_what_to_type_for_either_of_them(tmp_path: Path):
    (tmp_path / "nemo_gym-0.7.0.dist-info").mkdir()
    with pytest.raises(ShadowedPackageError) as refused:
        refuse_to_shadow("nemo-gym", "rollbook-nemo-gym", [str(tmp_path)])
    assert "pip uninstall nemo-gym" in str(refused.value)
    assert "pip uninstall rollbook-nemo-gym" in str(refused.value)


@pytest.mark.parametrize("folder", ["rollbook_nemo_gym-0.1.0.dist-info", "nemo_gym_extras-1.dist-info", "nemo_gym"])
def test_a_distribution_of_another_name_is_no_reason(tmp_path: Path, folder: str):
    (tmp_path / folder).mkdir()
    refuse_to_shadow("nemo-gym", "rollbook-nemo-gym", [str(tmp_path)])


def test_a_folder_of_the_import_path_that_does_not_exist_is_passed_over(tmp_path: Path):
    refuse_to_shadow("nemo-gym", "rollbook-nemo-gym", [str(tmp_path / "absent"), ""])

from importlib.metadata import version

import pytest

from rollbook.servers.serving.requirements import needs_of
from rollbook.servers.serving.unmet import unmet

YAML = version("pyyaml")


@pytest.mark.parametrize(
    ("line", "lacking"),
    [
        ("pyyaml", []),
        ("PyYAML>=1 --hash=sha256:ab", []),
        ("pyyaml<1", [f"pyyaml<1 ({YAML} is installed)"]),
        ("surely-missing>=2", ["surely-missing>=2"]),
        ('surely-missing; python_version < "3"', []),
        ("pyyaml @ git+https://example.test/any.git", []),
        ("surely-missing @ https://example.test/any.zip", ["surely-missing @ https://example.test/any.zip"]),
        ("git+https://example.test/pyyaml.git@main", []),
        ("git+https://example.test/surely-missing.git", ["git+https://example.test/surely-missing.git"]),
        ("https://example.test/pyyaml-0.1-py3-none-any.whl", True),
        ("https://example.test/odd.whl", []),
        ("https://example.test/", []),
        ("pytest-asyncio[surely-no-extra]", []),
        ("uvicorn[surely-no-extra]", []),
        ("rollbook[surely-no-extra]", []),
        ("-e ./beside", ["-e {folder}/beside"]),
        ("-e ./nowhere", []),
    ],
)
def test_a_line_is_met_when_its_package_is_here_in_a_version_that_fits(component, line, lacking):
    folder = component(requirements=line + "\n")
    (folder / "beside").mkdir()
    (folder / "beside" / "pyproject.toml").write_text('[project]\nname = "surely-missing"\n')
    found = [str(one) for one in unmet(needs_of(folder))]
    if lacking is True:
        assert found == [f"{line} ({YAML} is installed)"]
    else:
        assert found == [one.format(folder=folder) for one in lacking]


def test_an_override_is_asked_instead_of_the_line(component):
    folder = component(requirements="pyyaml<1\nsurely-missing\n", overrides="PyYAML>=1\nnever-asked-for\n")
    assert [str(one) for one in unmet(needs_of(folder))] == ["surely-missing"]


def test_an_extra_is_met_when_all_that_it_brings_is_here(component, tmp_path, monkeypatch):
    folder = tmp_path / "site" / "known_here-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: known-here\nVersion: 1.0\nProvides-Extra: good\nProvides-Extra: bad\n"
        'Requires-Dist: pyyaml; extra == "good"\nRequires-Dist: surely-missing; extra == "bad"\n'
        "Requires-Dist: also-missing\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    needs = needs_of(component(requirements="known-here[good]\nknown-here[bad]\n"))
    assert [str(one) for one in unmet(needs)] == ["known-here[bad]"]

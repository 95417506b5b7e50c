"""Every benchmark is whole: its files, what its README and its card say, and that its page lists it."""

import re

import pytest
import yaml

from architecture.source_tree import PACKAGE, REPOSITORY
from rollbook.config.manifest import read_manifest

SHELF = PACKAGE / "components" / "benchmarks"
BENCHMARKS = sorted(path.parent.name for path in SHELF.glob("*/config.yaml"))
FILES = ("manifest.yaml", "prepare.py", "README.md", "data/README.md")
README_HEADINGS = ("## The published file", "## Arguments of the script", "## Two rollouts", "## Licence")
CARD_HEADINGS = ("## Where they come from", "## How they are made", "## Fields", "## Splits", "## Known limits")

pytestmark = pytest.mark.parametrize("name", BENCHMARKS)


def text(path) -> str:
    return path.read_text(encoding="utf-8")


def test_a_benchmark_has_all_its_files_and_no_data(name):
    folder = SHELF / name
    assert [file for file in FILES if not (folder / file).is_file()] == []
    assert [*(folder / "tests").glob("test_*.py")]
    assert [path.name for path in folder.rglob("*") if path.suffix in {".jsonl", ".csv", ".gz", ".zip"}] == []


def test_its_manifest_repeats_its_configuration(name):
    manifest = read_manifest(SHELF / name / "manifest.yaml")
    servers = yaml.safe_load(text(SHELF / name / "config.yaml"))[manifest.dataset_owner]["resources_servers"]
    ((verifier, block),) = servers.items()
    (declared,) = block["datasets"]
    (repeated,) = manifest.datasets
    assert (manifest.name, manifest.kind, manifest.resources_server) == (name, "benchmark", verifier)
    assert repeated.model_dump(exclude_none=True) == declared
    assert manifest.standard_prompt_config == declared.get("prompt_config")


def test_its_readme_and_its_card_say_what_the_script_takes_and_makes(name):
    readme, card = text(SHELF / name / "README.md"), text(SHELF / name / "data" / "README.md")
    assert [heading for heading in README_HEADINGS if readme.splitlines().count(heading) != 1] == []
    assert [heading for heading in CARD_HEADINGS if card.splitlines().count(heading) != 1] == []
    script = text(SHELF / name / "prepare.py")
    (rows,) = re.findall(r"^ROWS: Final = (\d+)$", script, re.MULTILINE)
    signature = script.partition("def prepare(")[2].partition(") -> Path")[0]
    taken = re.findall(r"^    (\w+): [^\n]*= ", signature, re.MULTILINE)
    told = re.findall(r"^\| `(\w+)` \|", readme.partition("## Arguments")[2].partition("\n## ")[0], re.MULTILINE)
    assert sorted(told) == sorted({*taken} - {"jsonl_fpath"})
    assert f"| `expected_rows` | {rows} |" in readme
    assert re.search(rf"^\| \w+ \| {rows} \|$", card, re.MULTILINE)


def test_the_page_of_benchmarks_lists_it(name):
    page = text(REPOSITORY / "docs" / "benchmarks.md")
    assert f"| [{name}](../src/rollbook/components/benchmarks/{name}/README.md) |" in page

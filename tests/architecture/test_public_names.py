"""What `from rollbook import …` offers, and what importing it costs."""

import ast
import subprocess
import sys

import pytest

import rollbook
from architecture.source_tree import PACKAGE

HEAVY = (
    "fastapi",
    "aiohttp",
    "omegaconf",
    "hydra",
    "pydantic",
    "click",
    "rich",
    "uvicorn",
    "msgspec",
    "orjson",
    "asyncio",
)


def _stub_names() -> list[str]:
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    homes = [node for node in imports if (node.module or "").startswith("rollbook")]
    declared = [node.target for node in stub.body if isinstance(node, ast.AnnAssign)]
    return sorted(
        [alias.asname or alias.name for node in homes for alias in node.names]
        + [target.id for target in declared if isinstance(target, ast.Name)]
    )


def _loaded_by(statement: str) -> set[str]:
    code = f"{statement}\nimport sys; print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_stub_and_the_lazy_names_agree():
    assert sorted(rollbook.__all__) == [name for name in _stub_names() if name != "__all__"]


def test_the_public_names_are_sorted():
    assert list(rollbook.__all__) == sorted(rollbook.__all__)


@pytest.mark.parametrize("name", sorted(getattr(rollbook, "__all__", ["nothing_is_exported"])))
def test_every_public_name_resolves(name):
    assert getattr(rollbook, name) is not None


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = rollbook.no_such_name


def test_importing_rollbook_loads_nothing_heavy():
    assert _loaded_by("import rollbook") & set(HEAVY) == set()


PRINT_HELP = """
import contextlib, io, rollbook.cli
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    rollbook.cli.main(["--help"])
"""


def test_the_help_of_the_command_line_loads_nothing_heavy():
    assert _loaded_by(PRINT_HELP) & (set(HEAVY) - {"click"}) == set()

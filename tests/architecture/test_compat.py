"""The alias of NeMo Gym's names decides nothing, and nothing of ours depends on it."""

import ast
import subprocess
import sys

import rollbook
import rollbook.sandbox
from architecture.source_tree import REPOSITORY, functions, modules

COMPAT = REPOSITORY / "compat" / "nemo_gym"
ALIASES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((COMPAT / "src").rglob("*.py"))}
PUBLIC = {"rollbook": set(rollbook.__all__), "rollbook.sandbox": {*rollbook.sandbox.__all__, "process_supervisor"}}
"""The one module among them is a program: its file is what is taken."""
PASSED_ON = {"fastapi": {"Body"}, "omegaconf": {"DictConfig", "OmegaConf"}}
"""Names of other packages that the field's modules hold."""
HEAVY = {"aiohttp", "fastapi", "httpx", "msgspec", "omegaconf", "orjson", "pydantic", "asyncio"}
LONGEST = 3


def test_an_alias_takes_only_public_names():
    private = [
        f"{path.name}:{node.lineno} takes {alias.name} from {node.module}"
        for path, tree in ALIASES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if alias.name not in (PUBLIC | PASSED_ON).get(node.module or "", set())
    ]
    assert private == []


def _is_alias(node: ast.stmt) -> bool:
    """Whether a statement takes a name from elsewhere, or says of what file the module is."""
    return isinstance(node, ast.ImportFrom) or (isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute))


def test_a_module_of_aliases_holds_nothing_but_aliases():
    other = [
        f"{path.name}:{node.lineno}"
        for path, tree in ALIASES.items()
        for node in tree.body[1:]
        if path != COMPAT / "src" / "nemo_gym" / "__init__.py"
        if not _is_alias(node)
    ]
    assert other == []


def test_no_function_of_the_second_distribution_is_longer_than_three_lines():
    trees = ALIASES | {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted(COMPAT.glob("*.py"))}
    long = [
        f"{path.name}: {name}"
        for path, tree in trees.items()
        for name, function in functions(tree)
        if (function.body[-1].end_lineno or 0) - function.body[0].lineno >= LONGEST
    ]
    assert long == []


def test_nothing_of_ours_imports_the_alias():
    takers = [
        module.place
        for module in modules()
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Import) and any(alias.name.split(".")[0] == "nemo_gym" for alias in node.names))
        or (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "nemo_gym")
    ]
    assert takers == []


def test_importing_the_alias_loads_nothing_heavy():
    code = "import nemo_gym, sys; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & HEAVY == set()


def test_both_distributions_have_one_version():
    text = (COMPAT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'\nversion = "{rollbook.__version__}"\n' in text

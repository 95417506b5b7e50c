"""The product's source, parsed once for the tests of this folder.

Rules:
* A room is the first folder (or module) below `rollbook`; a component's own tests are no part of the product.
* A document's table is read as rows of cells, so that document and test cannot disagree.
"""

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "src" / "rollbook"
SHELF_TYPES = (
    "resources_servers",
    "responses_api_agents",
    "responses_api_models",
    "environment_servers",
    "environments",
    "benchmarks",
)


@dataclass(frozen=True)
class Module:
    """One parsed source file."""

    path: Path
    name: str
    tree: ast.Module
    text: str

    @property
    def room(self) -> str:
        parts = self.name.split(".")
        if len(parts) == 1:
            return "face"
        return "cli" if parts[1] == "__main__" else parts[1]

    @property
    def place(self) -> str:
        return self.path.relative_to(PACKAGE).as_posix()


@functools.cache
def modules() -> tuple[Module, ...]:
    """Return the product's modules, sorted by path."""
    return tuple(parse(path) for path in sorted(PACKAGE.rglob("*.py")) if not _is_component_test(path))


def _is_component_test(path: Path) -> bool:
    parts = path.relative_to(PACKAGE).parts
    return parts[0] == "components" and "tests" in parts


def parse(path: Path) -> Module:
    text = path.read_text(encoding="utf-8")
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    return Module(path, name, ast.parse(text, filename=str(path)), text)


@dataclass(frozen=True)
class Import:
    """One import of a module, `line` being where it stands and `name` what is taken from it."""

    target: str
    line: int
    name: str | None = None


def imports_of(module: Module, known: frozenset[str]) -> Iterator[Import]:
    """Yield every import of the file, those inside functions included; submodules are named in full."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield Import(alias.name, node.lineno)
        elif isinstance(node, ast.ImportFrom):
            base = _absolute(module, node)
            for alias in node.names:
                full = f"{base}.{alias.name}"
                yield Import(full, node.lineno) if full in known else Import(base, node.lineno, alias.name)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    if node.level == 0:
        return node.module or ""
    is_package = module.path.name == "__init__.py"
    parents = module.name.split(".")
    anchor = parents[: len(parents) - node.level + (1 if is_package else 0)]
    return ".".join([*anchor, *([node.module] if node.module else [])])


@functools.cache
def known_modules() -> frozenset[str]:
    return frozenset(module.name for module in modules())


def room_of(target: str) -> str:
    parts = target.split(".")
    return "face" if len(parts) == 1 else parts[1]


def table(document: str, heading: str) -> list[tuple[str, ...]]:
    """Return the rows of the first Markdown table below `heading` (any level) of a file in docs/."""
    text = (REPOSITORY / "docs" / document).read_text(encoding="utf-8")
    section = re.split(rf"^#+ {re.escape(heading)}$", text, maxsplit=1, flags=re.MULTILINE)[1]
    lines = re.split(r"^#+ ", section, maxsplit=1, flags=re.MULTILINE)[0].splitlines()
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|")) for line in lines if line.startswith("|")]
    return rows[2:]


def words_in_code(cell: str) -> tuple[str, ...]:
    return tuple(re.findall(r"`([^`]+)`", cell))


def functions(tree: ast.AST) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield every function with its dotted name inside the file."""
    yield from _functions(tree, ())


def _functions(node: ast.AST, outer: tuple[str, ...]) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield ".".join([*outer, child.name]), child
            yield from _functions(child, (*outer, child.name))
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, (*outer, child.name))
        else:
            yield from _functions(child, outer)


def code_lines(module_text: str, function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Count the lines of a function that hold code: no docstring, blank line or comment line."""
    first = function.body[0]
    has_docstring = (
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )
    skipped = set(range(first.lineno, (first.end_lineno or first.lineno) + 1)) if has_docstring else set()
    lines = module_text.splitlines()
    return sum(
        1
        for number in range(function.lineno, (function.end_lineno or function.lineno) + 1)
        if number not in skipped and lines[number - 1].strip() and not lines[number - 1].lstrip().startswith("#")
    )

"""The packages that a component leaves to NeMo Gym to bring: it imports them and does not list them.

Rules:
* Those count that are imported whenever the component is loaded: at the top level of its entry point, and of the
  modules beside it that are imported so in turn. Scripts that prepare data and tests ask for nothing.
* Only what an installation of NeMo Gym holds and one of Rollbook does not is looked for; a module of the component's
  own that has such a name is not that package.
* Files are read; nothing is imported.

Source: servers.md §2.3; the requirements that the distribution `nemo-gym` declares, and what these bring.
"""

import ast
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final
from warnings import catch_warnings, simplefilter

_ENTRY_POINT: Final = "app.py"
_BROUGHT: Final[Mapping[str, str]] = {
    "anthropic": "anthropic",
    "datasets": "datasets",
    "devtools": "devtools",
    "git": "GitPython",
    "huggingface_hub": "huggingface-hub",
    "jinja2": "jinja2",
    "jwt": "PyJWT",
    "mcp": "mcp",
    "mlflow": "mlflow",
    "numpy": "numpy",
    "openai": "openai",
    "pandas": "pandas",
    "psutil": "psutil",
    "pyarrow": "pyarrow",
    "pydot": "pydot",
    "ray": "ray[default]",
    "requests": "requests",
    "scipy": "scipy",
    "sqlparse": "sqlparse",
    "tqdm": "tqdm",
    "urllib3": "urllib3",
    "wandb": "wandb",
    "yappi": "yappi",
}
"""The requirement that brings a module, by the module's name."""
_IMPORT: Final = re.compile(r"^(?:from[ \t]+(\.*[\w.]*)[ \t]+)?import[ \t]*(\([^)]*\)|[^\n;#]*)", re.MULTILINE)
_NAME: Final = re.compile(r"[\w.]+")


def brought_along(folder: Path) -> tuple[str, ...]:
    """Return a requirement for each package that the component in `folder` leaves to NeMo Gym to bring, sorted."""
    found = {name for text in _loaded(folder) for name in _brought_in(text)}
    return tuple(sorted(_BROUGHT[name] for name in found if not _is_own(name, folder)))


def _is_own(name: str, folder: Path) -> bool:
    return any((folder / place).is_file() for place in (f"{name}.py", f"{name}/__init__.py"))


def _loaded(folder: Path) -> Iterator[str]:
    """Yield the text of the entry point and of every module of the component that is loaded with it."""
    waiting, seen = [folder / _ENTRY_POINT], set[Path]()
    while waiting:
        file = waiting.pop()
        if file in seen or not file.is_file():
            continue
        seen.add(file)
        text = file.read_text(encoding="utf-8-sig", errors="replace")
        yield text
        waiting += [path for module in _modules(text) for path in _files(module, file.parent, folder)]


def _modules(text: str) -> Iterator[str]:
    """Yield the names of what may be modules in the import statements of a text, leading dots included."""
    for found in _IMPORT.finditer(text):
        origin, names = found[1], _NAME.findall(found[2])
        if origin is None:
            yield from names
        else:
            yield origin
            yield from (f"{origin.rstrip('.')}.{name}" if origin.strip(".") else f"{origin}{name}" for name in names)


def _files(module: str, here: Path, folder: Path) -> Iterator[Path]:
    """Yield the files that an import of `module`, in a file in `here`, may load of the component in `folder`."""
    name = module.lstrip(".")
    dots = len(module) - len(name)
    base = folder
    if dots:
        base = [here, *here.parents][min(dots - 1, len(here.parents))]
    elif name.startswith(own := f"{folder.parent.name}.{folder.name}."):
        name = name.removeprefix(own)
    elif not _is_beside(name.partition(".")[0], folder):
        return
    if not base.is_relative_to(folder):
        return
    place = base
    for part in filter(None, name.split(".")):
        yield place / "__init__.py"
        yield place / f"{part}.py"
        place /= part
    yield place / "__init__.py"


def _is_beside(name: str, folder: Path) -> bool:
    return os.path.exists(f"{folder}/{name}.py") or os.path.exists(f"{folder}/{name}")  # noqa: PTH110  asked often


def _brought_in(text: str) -> Iterator[str]:
    """Yield the modules that a text imports at its top level and that NeMo Gym brings."""
    if any(module.partition(".")[0] in _BROUGHT for module in _modules(text)):
        yield from (name for name in _imported(text) if name in _BROUGHT)


def _imported(text: str) -> Iterator[str]:
    """Yield the first part of each module that is imported at the top level of a text that may be no Python."""
    try:
        with catch_warnings():
            simplefilter("ignore")
            statements = ast.parse(text).body
    except (SyntaxError, ValueError):
        return
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and not statement.level and statement.module:
            yield statement.module.partition(".")[0]

"""A benchmark's prepare script, read before it runs: that it is one, and what it takes.

Rules:
* The script is parsed and not imported: looking at it runs nothing and needs none of its packages.
* Where its `prepare` comes from elsewhere, what that takes shows when it runs.

Source: servers.md §8.10.
"""

import ast
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from rollbook.config.roots import require_read_path
from rollbook.errors import ConfigError

FUNCTION: Final = "prepare"
OUTPUT: Final = "jsonl_fpath"
"""The parameter that is given the data set's path by whoever runs the script, where it has one."""
_FIELD: Final = "nemo_gym"


class BenchmarkScript(msgspec.Struct, frozen=True):
    """A prepare script: the names that its function takes, and those that it needs; None where that is not told.

    `field_names` says that it is written for the import names of NeMo Gym.
    """

    path: Path
    takes: tuple[str, ...] | None
    needs: tuple[str, ...] = ()
    field_names: bool = False

    def refused(self, arguments: Collection[str]) -> str:
        """Return what is wrong with calling it with `arguments`; empty when nothing is."""
        unknown = [name for name in arguments if self.takes is not None and name not in self.takes]
        lacking = [name for name in self.needs if name not in arguments and name != OUTPUT]
        if unknown:
            return (
                f"{self.path}: its {FUNCTION}() takes {', '.join(self.takes or ()) or 'nothing'}, and no {unknown[0]}"
            )
        if lacking:
            return f"{self.path}: its {FUNCTION}() needs {lacking[0]}: +prepare_script_args.{lacking[0]}=VALUE"
        return ""


def read_script(path: str) -> BenchmarkScript:
    """Return the prepare script at `path`; a relative one is looked for under the search roots.

    Raises:
        ConfigPathNotFoundError: no root holds it.
        ConfigError: it is no Python, or has no function `prepare` to be called.

    """
    found = require_read_path(path, "prepare script")
    try:
        tree = ast.parse(found.read_bytes(), filename=str(found))
    except (SyntaxError, ValueError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        raise ConfigError(f"{found}{line}: no Python: {getattr(error, 'msg', error)}") from error
    field = any(name.partition(".")[0] == _FIELD for name in _imported(tree))
    for node in _statements(tree.body):
        match node:
            case ast.FunctionDef(name=name) if name == FUNCTION:
                return _with_signature(found, node.args, field_names=field)
            case ast.AsyncFunctionDef(name=name) if name == FUNCTION:
                raise ConfigError(f"{found}:{node.lineno}: {FUNCTION}() is a coroutine; write `def {FUNCTION}`")
        if FUNCTION in _bound(node):
            return BenchmarkScript(found, None, field_names=field)
    raise ConfigError(f"{found}: it defines no function `{FUNCTION}` that writes the data set and returns its path")


def _with_signature(path: Path, arguments: ast.arguments, *, field_names: bool) -> BenchmarkScript:
    placed = [one.arg for one in arguments.args]
    named = [one.arg for one in arguments.kwonlyargs]
    needed = placed[: len(placed) - len(arguments.defaults)]
    needed += [name for name, default in zip(named, arguments.kw_defaults, strict=True) if default is None]
    takes = None if arguments.kwarg is not None else (*placed, *named)
    return BenchmarkScript(path, takes, tuple(needed), field_names)


def _statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a module, those under its conditions and in its `try` too."""
    for node in body:
        yield node
        if isinstance(node, (ast.If, ast.Try)):
            yield from _statements([*node.body, *node.orelse])


def _bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement binds by importing or assigning."""
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name for alias in node.names}
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {target.id for target in targets if isinstance(target, ast.Name)}


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module or ""

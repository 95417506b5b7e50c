"""From an implementation's folder to the class that it serves.

Rules:
* An `app.py` is loaded by its path, under the module name `<type>.<implementation>.<stem>`; once per path.
* Modules that lie beside it are its own: another component may have modules of the same name.
* The class is the one whose `run_webserver()` the file calls when it is run; the text is read, nothing is guessed.
* A package that is not installed is named together with the line that installs it; nothing is installed.

Source: servers.md §1.1, §2.3, §2.4.
"""

import ast
import importlib.util
import inspect
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final

from rollbook.config.names import SERVER_TYPES
from rollbook.config.roots import put_roots_on_import_path
from rollbook.config.types import ServerInstanceConfig
from rollbook.errors import MissingPackageError, RollbookError, ServingError
from rollbook.servers.base import SimpleServer

_loaded: Final[dict[Path, ModuleType]] = {}


def load_server_class(instance: ServerInstanceConfig) -> type[SimpleServer]:
    """Return the class that the instance's entry point serves.

    Raises:
        MissingPackageError: the component imports a package that is not installed; names the `pip install` line.
        ServingError: the entry point is missing, cannot be imported, or serves no class.

    """
    path = instance.dir_path / instance.entrypoint
    if not path.is_file():
        raise ServingError(
            f"server {instance.name!r} has no entry point {instance.server_type}/{instance.implementation}/"
            f"{instance.entrypoint} under any search root; check the name, or add its root with --search-dir"
        )
    module = load_module(path.resolve(), f"{instance.server_type}.{instance.implementation}.{path.stem}")
    return served_class(module, path)


def load_module(path: Path, name: str) -> ModuleType:
    """Return the module in `path`, loading it the first time it is asked for.

    Raises:
        MissingPackageError: it imports a package that is not installed.
        ServingError: it raises while it is imported.

    """
    known = _loaded.get(path) or sys.modules.get(name)
    if known is not None and known.__file__ is not None and Path(known.__file__).resolve() == path:
        _loaded[path] = known
        return known
    put_roots_on_import_path()
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ServingError(f"{path} is no Python file; check the entrypoint of {name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with own_neighbours(path.parent):
            spec.loader.exec_module(module)
    except BaseException as error:
        sys.modules.pop(name, None)
        if isinstance(error, RollbookError) or not isinstance(error, Exception):
            raise
        raise import_failure(error, path) from error
    _loaded[path] = module
    return module


def import_failure(error: Exception, path: Path) -> ServingError:
    """Return the error for an entry point whose import raised `error`."""
    name = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    if name.partition(".")[0] in SERVER_TYPES:
        return ServingError(f"{path} imports {name!r}, which no search root holds; add its root with --search-dir")
    if name:
        return missing_package(name.partition(".")[0], path.parent)
    return ServingError(f"{path} cannot be imported: {type(error).__name__}: {error}")


@contextmanager
def own_neighbours(folder: Path) -> Iterator[None]:
    """Let modules beside an entry point be imported by their bare names, and keep them from other components."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in set(sys.modules) - before:
            file = getattr(sys.modules[name], "__file__", None)
            if file and "." not in name and Path(file).parent == folder:
                del sys.modules[name]


def served_class(module: ModuleType, path: Path) -> type[SimpleServer]:
    """Return the class that `module` serves: the one it runs as a script, else the only server it defines.

    Raises:
        ServingError: it runs none, and defines none or several.

    """
    name = class_run_as_script(path.read_text(encoding="utf-8"))
    named = getattr(module, name, None) if name else None
    if isinstance(named, type) and issubclass(named, SimpleServer):
        return named
    defined = [
        value
        for value in vars(module).values()
        if isinstance(value, type)
        and issubclass(value, SimpleServer)
        and value.__module__ == module.__name__
        and not inspect.isabstract(value)
    ]
    if len(defined) == 1:
        return defined[0]
    names = ", ".join(value.__name__ for value in defined) or "none"
    raise ServingError(
        f"{path} does not say which server it serves (it defines {names}); "
        "end it with `if __name__ == '__main__': <class>.run_webserver()`"
    )


def class_run_as_script(source: str) -> str | None:
    """Return the name of the class whose `run_webserver()` the source calls under `__main__`, if there is one."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.If) and "__main__" in ast.unparse(node.test):
            for inner in ast.walk(node):
                if (
                    isinstance(inner, ast.Call)
                    and isinstance(inner.func, ast.Attribute)
                    and inner.func.attr == "run_webserver"
                    and isinstance(inner.func.value, ast.Name)
                ):
                    return inner.func.value.id
    return None


def missing_package(package: str, folder: Path) -> MissingPackageError:
    """Return the error for a component in `folder` that imports `package`, which is not installed."""
    component = f"{folder.parent.name}/{folder.name}"
    lines = requirement_lines(folder / "requirements.txt")
    install = " ".join(shlex.quote(line) for line in lines) or package
    return MissingPackageError(
        f"{component} needs the package {package!r}, which is not installed; run: pip install {install}"
    )


def requirement_lines(path: Path) -> tuple[str, ...]:
    """Return the packages that a requirements file names; options and comments are left out."""
    if not path.is_file():
        return ()
    lines = (line.partition(" #")[0].strip() for line in path.read_text(encoding="utf-8").splitlines())
    return tuple(line for line in lines if line and not line.startswith(("#", "-")))

"""From an implementation's folder to the class that it serves.

Rules:
* An `app.py` is loaded by its path, under the module name `<type>.<implementation>.<stem>`; once per path.
* A component that does not ship is loaded and built with its own folder as the working directory.
* Modules that lie beside it are its own: another component may have modules of the same name.
* The class is the one whose `run_webserver()` the file calls when it is run; the text is read, nothing is guessed.
* Whatever a component raises while it is loaded or built becomes one error that names instance, file and line.
* A package that is not installed is named together with the line that installs it; nothing is installed.

Source: servers.md §1.1, §2.3, §2.4.
"""

import ast
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Final, TypeVar

from rollbook.config.names import SERVER_TYPES
from rollbook.config.roots import put_roots_on_import_path
from rollbook.config.types import ServerInstanceConfig
from rollbook.errors import RollbookError, ServingError
from rollbook.servers.base import SimpleServer
from rollbook.servers.serving.own_folder import in_own_folder, relative_path_hint

Built = TypeVar("Built")
_loaded: Final[dict[Path, ModuleType]] = {}


def build_component(instance: ServerInstanceConfig, make: Callable[[type[SimpleServer]], Built]) -> Built:
    """Return what `make` makes of the class that the instance's entry point serves.

    Raises:
        MissingPackageError: the component imports a package that is not installed; names the `pip install` line.
        ServingError: the entry point is missing, serves no class, or raises; names instance, file and line.

    """
    path = instance.dir_path / instance.entrypoint
    if not path.is_file():
        raise ServingError(
            f"server {instance.name!r} has no entry point {instance.server_type}/{instance.implementation}/"
            f"{instance.entrypoint} under any search root; check the name, or add its root with --search-dir"
        )
    name = f"{instance.server_type}.{instance.implementation}.{path.stem}"
    put_roots_on_import_path()
    try:
        with in_own_folder(path.parent):
            return make(served_class(load_module(path.resolve(), name), path))
    except RollbookError:
        raise
    except (Exception, SystemExit) as error:
        raise component_failure(error, instance.name, path) from error


def load_module(path: Path, name: str) -> ModuleType:
    """Return the module in `path`, loading it the first time it is asked for.

    Raises whatever the module raises while it is imported.
    """
    known = _loaded.get(path) or sys.modules.get(name)
    if known is not None and known.__file__ is not None and Path(known.__file__).resolve() == path:
        _loaded[path] = known
        sys.modules.setdefault(name, known)
        return known
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ServingError(f"{path} is no Python file; check the entrypoint of {name}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with own_neighbours(path.parent):
            spec.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    _loaded[path] = module
    return module


def component_failure(error: BaseException, instance: str, path: Path) -> ServingError:
    """Return the error for a component whose entry point is `path` and which raised `error`."""
    name = error.name or "" if isinstance(error, ModuleNotFoundError) else ""
    if name.partition(".")[0] in SERVER_TYPES:
        return ServingError(f"{path} imports {name!r}, which no search root holds; add its root with --search-dir")
    if isinstance(error, ImportError):
        from rollbook.servers.serving.missing_field_names import name_left_out, place_of  # noqa: PLC0415  as below

        left_out = name_left_out(str(error), place_of(error) or path)
        if left_out is not None:
            return left_out
    if name:
        from rollbook.servers.serving.requirements import missing_package  # noqa: PLC0415  on the way out alone

        return missing_package(name.partition(".")[0], path.parent)
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if Path(frame.filename).resolve() == path.resolve()
    ]
    where = f"{path}:{lines[-1]}" if lines else str(path)
    hint = relative_path_hint(error)
    return ServingError(f"server {instance!r} cannot be built ({where}): {type(error).__name__}: {error}{hint}")


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

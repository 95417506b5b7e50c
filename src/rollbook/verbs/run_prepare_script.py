"""The program that runs one prepare script: `python -m rollbook.verbs.run_prepare_script RESULT`.

Rules:
* What to run comes on standard input, and what came of it goes into the file RESULT; both are JSON.
* Output belongs to the script, and goes where its caller lets it go.
* An error of ours is a sentence for the caller; any other is the script's own, and its traceback is shown.

Source: servers.md §8.10.
"""

import importlib
import importlib.util
import inspect
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from rollbook.config.roots import put_roots_on_import_path, search_roots
from rollbook.errors import ConfigError, RollbookError
from rollbook.records.json_values import JsonObject
from rollbook.verbs.benchmark_script import FUNCTION, OUTPUT

_INTERRUPTED: Final = 130
_ALONE: Final = "a_prepare_script"


def main() -> int:
    """Run what standard input asks for, and return the exit code."""
    asked = json.load(sys.stdin)
    result = Path(sys.argv[1])
    try:
        told = {"path": str(prepared(Path(asked["script"]), asked[OUTPUT], asked["arguments"]))}
    except RollbookError as error:
        told = {"error": str(error)}
    except ModuleNotFoundError as error:
        told = {"error": _told_missing(asked["script"], str(error.name))}
    except KeyboardInterrupt:
        return _INTERRUPTED
    result.write_text(json.dumps(told), encoding="utf-8")
    return 0


def prepared(script: Path, output: str, arguments: JsonObject) -> Path:
    """Call a script's function, and return the path that it returns.

    Raises:
        ConfigError: it returns something else.

    """
    put_roots_on_import_path()
    function = getattr(_loaded(script), FUNCTION)
    if OUTPUT in inspect.signature(function).parameters:
        arguments = {OUTPUT: Path(output), **arguments}
    returned = function(**arguments)
    if not isinstance(returned, (str, Path)):
        raise ConfigError(f"{script}: {FUNCTION}() returns {returned!r}; it is to return the path of what it wrote")
    return Path(returned).absolute()


def _told_missing(script: str, module: str) -> str:
    package = module.partition(".")[0]
    return (
        f"{script} needs the package {package!r}, which is not installed for {sys.executable}; run: pip install "
        f"{package}; or name it in prepare_dependencies of the data set, and --isolate makes an environment with it"
    )


def _loaded(script: Path) -> ModuleType:
    """Import a script by the name that it has under its search root, so that it finds its neighbours; else alone."""
    for root in search_roots():
        if script.is_relative_to(root):
            parts = script.relative_to(root).with_suffix("").parts
            if importlib.util.find_spec(".".join(parts[:1])) is None:
                continue
            module = importlib.import_module(".".join(parts))
            if Path(str(module.__file__)).resolve() == script.resolve():
                return module
    return _alone(script)


def _alone(script: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(_ALONE, script)
    if spec is None or spec.loader is None:
        raise ConfigError(f"{script}: it cannot be imported; name it with the ending .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[_ALONE] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())

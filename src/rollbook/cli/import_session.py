"""One `gym eval import`, from the logs it names to what is printed.

Rules:
* What was imported is told as counts that add up to what was planned.
"""

from collections.abc import Sequence
from pathlib import Path

from rollbook.cli.terminal import say, say_json
from rollbook.report.import_text import import_json, import_text
from rollbook.verbs.import_logs import import_logs


def show_import(paths: Sequence[str], output: str, scorer: str | None, *, overwrite: bool, as_json: bool) -> None:
    """Import the logs at `paths` and print what came of it."""
    imported = import_logs([Path(path) for path in paths], Path(output), scorer=scorer, overwrite=overwrite)
    told = {
        "logs": imported.logs,
        "tasks": imported.tasks,
        "rollouts": imported.rollouts,
        "scored": imported.scored,
        "unscored": imported.unscored,
        "failed": imported.failed,
        "missing": imported.missing,
    }
    if as_json:
        say_json(import_json(told, output, imported.form, imported.failures))
    else:
        say(import_text(told, output, imported.form, imported.failures))

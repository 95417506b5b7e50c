"""Where the command line begins and ends.

Rules:
* An error of ours is one red line and its own exit code; a usage error is 2; an interrupt is 130.
* A traceback is a defect of ours: it is logged under `-v`, and one line stands for it otherwise.

Source: servers.md §10.1.
"""

import errno
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import click

from rollbook.cli.terminal import have_streams, lead_nowhere, note, say_error
from rollbook.cli.verb import Verb, VerbGroup
from rollbook.errors import RollbookError

_INTERRUPTED: Final = 130
_FAILED: Final = 1

gym: Final = VerbGroup(
    "gym",
    {
        "eval": Verb("rollbook.cli.eval_group", "Run tasks against servers and score what comes back."),
        "env": Verb("rollbook.cli.env_group", "Make, check and serve environments."),
        "dataset": Verb("rollbook.cli.dataset_group", "Make data sets: render, collate, download, upload."),
        "dev": Verb("rollbook.cli.dev_group", "Look into saved rollouts: compare."),
        "search": Verb("rollbook.cli.search", "Find environments, benchmarks, agents, models and resources servers."),
        "list": Verb("rollbook.cli.list_group", "List environments, benchmarks, agents, models and resources servers."),
    },
    summary="Collect rollouts of language-model agents, and account for every one.",
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line on `arguments` (the process's own by default) and exit with its code."""
    have_streams()
    sys.exit(exit_code_of(arguments))


def exit_code_of(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; every error has been said when this returns."""
    try:
        answer = gym.main(args=arguments, prog_name=_program_name(), standalone_mode=False)
    except KeyboardInterrupt:
        return _interrupted()
    except Exception as error:  # noqa: BLE001  the last boundary: docs/architecture.md
        return _said(error)
    return answer if isinstance(answer, int) else 0


def _said(error: Exception) -> int:
    """Say `error` and return the exit code that it stands for."""
    match error:
        case click.Abort():
            return _interrupted()
        case click.ClickException():
            shown = io.StringIO()
            error.show(shown)
            note(shown.getvalue().rstrip("\n"))
            return error.exit_code
        case RollbookError():
            say_error(str(error))
            return error.exit_code
        case BrokenPipeError():
            return _reader_went_away()
        case OSError():
            say_error(_of_the_system(error))
        case _:
            say_error(f"{type(error).__name__}: {error} (this is a defect of ours; -v logs where it happened)")
    return _FAILED


def _of_the_system(error: OSError) -> str:
    """Say what the system refused, and of which file, in words and without its number."""
    named = error.filename2 or error.filename
    if named is None:
        return error.strerror or str(error)
    path = Path(os.fsdecode(named))
    if error.errno == errno.ENAMETOOLONG:
        return f"{path}: the name is too long for the disk; give a shorter one"
    below = next((place for place in (path, *path.parents) if os.path.exists(place)), path)  # noqa: PTH110  never raises
    if error.errno in {errno.EEXIST, errno.ENOTDIR} and not below.is_dir():
        return f"{below} is a file, and can hold no other; name another place"
    if error.errno == errno.EISDIR:
        return f"{path} is a folder; name a file"
    return f"{path}: {error.strerror}"


def _interrupted() -> int:
    note("Interrupted.")
    return _INTERRUPTED


def _reader_went_away() -> int:
    """Let the interpreter flush into nothing at exit; who closed the pipe has read enough."""
    lead_nowhere(sys.stdout)
    return _FAILED


def _program_name() -> str:
    return "rollbook" if Path(sys.argv[0]).stem == "rollbook" else "gym"

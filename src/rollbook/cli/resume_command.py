"""The command line of this process, and the one that goes on with its run.

Rules:
* What is printed or kept holds no secret: a person fills it in again.
"""

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rollbook.api.provenance import masked_command

_REPLACED: Final = frozenset({"--overwrite", "--resume", "--resubmit"})


def command_line() -> tuple[str, ...]:
    """Return the words of this process's command line; the program by its name."""
    return (Path(sys.argv[0]).name, *sys.argv[1:])


def resume_command(words: Sequence[str]) -> str:
    """Return the command that goes on with the run that `words` started."""
    program, *rest = words
    kept = [word for word in masked_command(rest) if word not in _REPLACED]
    return shlex.join([Path(program).name, *kept, "--resume"])

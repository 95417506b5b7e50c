"""The command line of this process, and the one that goes on with its run.

Rules:
* What is printed or kept holds no secret: a person fills it in again.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from rollbook.api.provenance import masked_command
from rollbook.records.command import CREDENTIAL, PUT_BACK, resume_words, typed


def command_line() -> tuple[str, ...]:
    """Return the words of this process's command line; the program by its name."""
    return (Path(sys.argv[0]).name, *sys.argv[1:])


def resume_command(words: Sequence[str]) -> str:
    """Return the command that goes on with the run that `words` started."""
    program, *rest = words
    command = typed(resume_words([program, *masked_command(rest)]))
    return f"{command}\n{PUT_BACK}" if CREDENTIAL in command else command

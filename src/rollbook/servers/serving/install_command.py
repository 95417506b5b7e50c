"""One command of an installer, run to its end.

Rules:
* The event loop stays free; whoever is cancelled meanwhile ends the command and all that it started.
* What it says goes to a file; credentials in addresses are not shown from there.
* It sees no package of ours: the variables that would show it some are taken away.

Source: servers.md §2.3.
"""

import asyncio
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from rollbook.servers.serving.child_process import log_tail, signal_group
from rollbook.servers.serving.requirement_lines import without_credentials

_HIDDEN: Final = ("PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV", "CONDA_PREFIX")


class RunCommand(Protocol):
    """Runs `command` in `folder` with `variables` added, appends what it says to `log`, and returns its exit code.

    It and all that it starts hold the descriptors `held` open, as long as any of them lives.
    """

    async def __call__(
        self,
        command: Sequence[str],
        folder: Path,
        log: Path,
        variables: Mapping[str, str],
        held: Sequence[int] = (),
    ) -> int:
        """Return the exit code."""
        ...


async def run_command(
    command: Sequence[str], folder: Path, log: Path, variables: Mapping[str, str], held: Sequence[int] = ()
) -> int:
    """Run a command to its end; see `RunCommand`.

    Raises:
        OSError: the program cannot be started.

    """
    kept = {name: value for name, value in os.environ.items() if name not in _HIDDEN}
    with log.open("ab") as output:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=folder,
            env={**kept, **variables},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            pass_fds=held,
        )
    try:
        return await process.wait()
    except asyncio.CancelledError:
        signal_group(process.pid, signal.SIGKILL)
        await process.wait()
        raise


def shown_tail(log: Path) -> str:
    """Return the last lines of a log as they may be shown."""
    return without_credentials(log_tail(log))

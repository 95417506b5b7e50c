"""How much a sandboxed command may take, as words of the shell that sets it.

Rules:
* Every limit is both soft and hard: a program cannot raise what it was given.
* Limits are per process, but for the number of processes.
* A limit that the machine refuses is left out in silence; the isolation says which kinds hold.
"""

import math
from dataclasses import dataclass, replace
from typing import Final, Self

from rollbook.sandbox.values import SandboxResources

KIB: Final = 1024
BLOCK_BYTES: Final = 512
"""The unit of `ulimit -f` in a POSIX shell."""
CPU_GRACE_S: Final = 5


@dataclass(frozen=True)
class Limits:
    """What a process may take: address space, size of a file it writes, open files; and processes of one sandbox."""

    memory_mib: int | None = 4096
    file_mib: int = 4096
    open_files: int = 1024
    processes: int = 256

    def within(self, resources: SandboxResources) -> Self:
        """Return the limits of a sandbox that asked for `resources`."""
        memory = self.memory_mib if resources.memory_mib is None else int(resources.memory_mib)
        file_mib = self.file_mib if resources.disk_gib is None else math.ceil(resources.disk_gib * KIB)
        return replace(self, memory_mib=memory, file_mib=file_mib)

    def script(self, cpu_seconds: int | None, *, bound_processes: bool) -> str:
        """Return the shell commands that set these limits on the shell and on what it starts."""
        wanted = {
            "-c": 0,
            "-f": self.file_mib * KIB * KIB // BLOCK_BYTES,
            "-n": self.open_files,
            "-v": self.memory_mib and self.memory_mib * KIB,
            "-t": cpu_seconds,
        }
        lines = [f"ulimit {flag} {value}" for flag, value in wanted.items() if value is not None]
        if bound_processes:
            lines.append(f"ulimit -u {self.processes} || ulimit -p {self.processes}")
        return "; ".join(lines)


def cpu_seconds(timeout_s: float | None, processors: float) -> int | None:
    """Return the seconds of processor time that one process can use up in `timeout_s`, and a little more."""
    if timeout_s is None:
        return None
    return math.ceil(timeout_s * max(1.0, processors)) + CPU_GRACE_S

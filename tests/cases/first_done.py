"""What a process does before it becomes a command: a state of the machine, a shorter wait, a last word."""

import resource
import sys
from multiprocessing.util import Finalize
from pathlib import Path

from rollbook.dispatch import watch


def few_files(soft: int, hard: int) -> None:
    """Have so many files open at most."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def stalls_soon() -> None:
    """Say that a run stalls after a third of a second."""
    watch.STALLED_SECONDS = 0.3  # type: ignore[misc]


def tells_its_peak() -> None:
    """Say at the end how much memory was held at once, as the kernel has it: `peak <kB>`, the last words."""
    Finalize(None, _tell_peak, exitpriority=0)


def _tell_peak() -> None:
    (peak,) = (line.split()[1] for line in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in line)
    sys.stderr.write(f"peak {peak}\n")

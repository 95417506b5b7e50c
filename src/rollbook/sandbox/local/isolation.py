"""What this machine's kernel lends to a sandbox, and the words that ask for it.

Rules:
* It is tried once, with the very words that are used later; a machine that refuses gets plain subprocesses.
* Namespaces are held by one process for each sandbox. When that process ends, the kernel ends everything in them.
* A command gets process numbers of its own below those of the sandbox, so that its end is the end of all it started.
* None of it keeps a program from reading what the user of this process may read.
"""

import functools
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

LOG: Final = logging.getLogger(__name__)
PROBE_TIMEOUT_S: Final = 10
FEWEST_PROCESS_NUMBERS: Final = 300
"""What the kernel keeps of the process numbers of a namespace for itself."""
COUNTS_APART_SINCE: Final = (5, 14)

LOOPBACK_UP: Final = (
    "import fcntl, socket, struct; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); "
    "fcntl.ioctl(s, 0x8914, struct.pack('16sh', b'lo', 1))"
)
HOLD: Final = """
PATH=/usr/sbin:/usr/bin:/sbin:/bin:$PATH
exec 3<&0
ip link set lo up 2>/dev/null || ifconfig lo up 2>/dev/null || "$2" -I -S -c "$3" 2>/dev/null
echo "$1" 2>/dev/null >/proc/sys/kernel/pid_max
echo ready
cat <&3 >/dev/null 2>&1 &
wait $!
"""
"""The first process of a sandbox: it buries the dead until whoever made the sandbox closes its input or dies."""


@dataclass(frozen=True)
class Isolation:
    """What holds on this machine: the tools that make namespaces, or why there are none."""

    unshare: str = ""
    nsenter: str = ""
    why_not: str = ""
    counts_processes: bool = False
    """Whether the kernel counts the processes of a sandbox apart from all others of the user."""

    @property
    def namespaces(self) -> bool:
        """Whether sandboxes have namespaces of their own."""
        return not self.why_not

    def describe(self, *, network: bool) -> str:
        """Return what holds, in a sentence."""
        if self.namespaces:
            reach = "the network of this machine" if network else "no network"
            return f"own process numbers, {reach}; the files of this machine can be read"
        return f"plain subprocesses, with the network and the files of this machine: {self.why_not}"

    def holder(self, sandbox_id: str, processes: int, *, network: bool) -> list[str]:
        """Return the command line of the process that holds a sandbox's namespaces."""
        numbers = str(processes + FEWEST_PROCESS_NUMBERS)
        script = ["/bin/sh", "-c", HOLD, sandbox_id, numbers, sys.executable, LOOPBACK_UP]
        return [self.unshare, *_own(network=network), "--", *script]

    def inside(self, holder: int, command: Sequence[str], *, network: bool, outlives: bool) -> list[str]:
        """Return the command line that runs `command` in the namespaces of a holder.

        With `outlives`, what the command leaves behind goes on, as long as the sandbox does.
        """
        kinds = ["user", "mnt", "ipc", *(() if network else ("net",))]
        flags = {"user": "--user", "mnt": "--mount", "ipc": "--ipc", "net": "--net"}
        entered = [f"{flags[kind]}=/proc/{holder}/ns/{kind}" for kind in kinds]
        numbers = f"--pid=/proc/{holder}/ns/pid_for_children"
        own = [] if outlives else [self.unshare, "--pid", "--fork", "--kill-child", "--mount-proc", "--"]
        return [self.nsenter, "--preserve-credentials", *entered, numbers, "--", *own, *command]


@functools.cache
def isolation_here() -> Isolation:
    """Return what holds on this machine; asked once, and said once in the log."""
    found = _tried(shutil.which("unshare"), shutil.which("nsenter"))
    LOG.warning("local sandboxes are no security boundary; they have: %s", found.describe(network=False))
    return found


def _tried(unshare: str | None, nsenter: str | None) -> Isolation:
    if not unshare or not nsenter:
        return Isolation(why_not="the programs unshare and nsenter are not installed")
    words = [unshare, *_own(network=False), "--", "/bin/sh", "-c", ":"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)  # noqa: S603  fixed words
    except (OSError, subprocess.TimeoutExpired) as error:
        return Isolation(why_not=f"namespaces could not be tried: {error}")
    if done.returncode:
        return Isolation(why_not=f"the kernel allows no namespaces: {done.stderr.strip() or done.returncode}")
    return Isolation(unshare=unshare, nsenter=nsenter, counts_processes=_release() >= COUNTS_APART_SINCE)


def _release() -> tuple[int, ...]:
    """Return the first two numbers of the kernel's version."""
    return tuple(int(number) for number in re.findall(r"\d+", os.uname().release)[:2])


def _own(*, network: bool) -> list[str]:
    net = [] if network else ["--net"]
    return ["--user", "--map-root-user", *net, "--ipc", "--pid", "--fork", "--kill-child", "--mount-proc"]

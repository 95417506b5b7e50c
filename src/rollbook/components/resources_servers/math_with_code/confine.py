"""A program of a sandbox, run where it reads and writes nothing but what Python needs.

Rules:
* It runs inside the sandbox, on the standard library alone: `python3 -I confine.py program.py`.
* Where the kernel has Landlock, the sandbox's folder can be written, Python and the system's libraries can be read, and
  everything else is refused, to whatever the program starts too. Where it has none, nothing is refused.

Source: landlock(7).
"""

import contextlib
import ctypes
import os
import struct
import sys
from pathlib import Path
from typing import Final

CREATE_RULESET: Final = 444
ADD_RULE: Final = 445
RESTRICT_SELF: Final = 446
VERSION: Final = 1
PATH_BENEATH: Final = 1
NO_NEW_PRIVILEGES: Final = 38
KINDS: Final = {1: 13, 2: 14}
"""How many kinds of access a version of Landlock knows; later ones know `LATER_KINDS` that matter here."""
LATER_KINDS: Final = 15
EXECUTE, WRITE_FILE, READ_FILE, READ_DIR, TRUNCATE = 1, 2, 4, 8, 1 << 14
READ: Final = EXECUTE | READ_FILE | READ_DIR
OF_FILES: Final = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE
READABLE: Final = (
    "/usr /bin /sbin /lib /lib32 /lib64 /nix/store /proc /dev /sys/devices/system/cpu /etc/ld.so.cache /etc/localtime "
    "/etc/alternatives /etc/mime.types"
)


def landlock_version() -> int:
    """Return which Landlock the kernel has, 0 without any."""
    if sys.platform != "linux":
        return 0
    return max(0, int(ctypes.CDLL(None).syscall(CREATE_RULESET, None, ctypes.c_size_t(0), VERSION)))


def confine() -> bool:
    """Refuse this process and all that it starts what it does not need; return whether the kernel can."""
    version = landlock_version()
    if not version:
        return False
    kernel = ctypes.CDLL(None)
    every = (1 << KINDS.get(version, LATER_KINDS)) - 1
    attributes = ctypes.create_string_buffer(struct.pack("=Q", every), 8)
    rules = kernel.syscall(CREATE_RULESET, attributes, ctypes.c_size_t(8), 0)
    if rules < 0:
        return False
    allow(kernel, rules, os.environ["HOME"], every)
    allow(kernel, rules, os.devnull, (READ_FILE | WRITE_FILE | TRUNCATE) & every)
    for path in {*READABLE.split(), sys.prefix, sys.base_prefix, *filter(None, sys.path)}:
        allow(kernel, rules, path, READ)
    kernel.prctl(NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    done: bool = kernel.syscall(RESTRICT_SELF, rules, 0) == 0
    os.close(rules)
    return done


def allow(kernel: ctypes.CDLL, rules: int, path: str, access: int) -> None:
    """Allow kinds of access to what lies at or below a path, if there is anything."""
    with contextlib.suppress(OSError):
        place = os.open(path, os.O_PATH)
        allowed = access if Path(path).is_dir() else access & OF_FILES
        rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, place), 12)
        kernel.syscall(ADD_RULE, rules, PATH_BENEATH, rule, 0)
        os.close(place)


def main() -> None:
    """Run the program that the command line names."""
    program = Path(sys.argv[1])
    text = program.read_text(encoding="utf-8")
    confine()
    exec(compile(text, program.name, "exec"), {"__name__": "__main__", "__builtins__": __builtins__})  # noqa: S102  a program of the shelf


if __name__ == "__main__":
    main()

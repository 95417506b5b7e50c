"""A process that has the command line loaded, and becomes a new process of it on demand.

Rules:
* It reads one JSON line per order on standard input: arguments to run, or the pid of an ended child to reap.
* A child leads a session of its own, with its own files for output, and ends as the command line ends.

Run: python -m crash.zygote
"""

import json
import os
import sys
from typing import Any

from rollbook.cli import eval_run, eval_session, eval_settings
from rollbook.cli.entry import main

LOADED = (eval_run, eval_session, eval_settings)


def _become(order: dict[str, Any]) -> None:
    """Turn this process into a fresh one that will run the order."""
    os.setsid()
    files = [os.open(os.devnull, os.O_RDONLY)]
    files += [os.open(order[name], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644) for name in ("out", "err")]
    for standard, descriptor in enumerate(files):
        os.dup2(descriptor, standard)
        os.close(descriptor)
    sys.argv = ["gym", *order["run"]]


def _answered(answer: dict[str, int]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


def obey() -> list[str] | None:
    """Obey orders; return in a child with what it is to run, and in the parent once there are no more orders."""
    for line in iter(sys.stdin.readline, ""):
        order = json.loads(line)
        if "reap" in order:
            _, status = os.waitpid(order["reap"], 0)
            _answered({"code": os.waitstatus_to_exitcode(status)})
            continue
        child = os.fork()
        if child == 0:
            _become(order)
            return list(order["run"])
        _answered({"pid": child})
    return None


if __name__ == "__main__":
    arguments = obey()
    if arguments is not None:
        main(arguments)

"""Answers questions about texts, one a line, until its input ends. Run as a program, in a process of its own.

Rules:
* Standard output carries replies alone.
* It takes no more memory than it is given, and a question that goes on after its time ends this process.
"""

import contextlib
import json
import math
import os
import resource
import signal
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from resources_servers.math_with_judge.comparison import READY
from resources_servers.structured_outputs.checking import fault
from resources_servers.structured_outputs.questions import Fault, Question

MOST_MEMORY: Final = 2 << 30
_GRACE_SECONDS: Final = 5


def answered(line: str) -> str:
    """Return the reply to one line, whose question may not outlive its time."""
    request: dict[str, Any] = json.loads(line)
    signal.alarm(math.ceil(request.pop("seconds")) + _GRACE_SECONDS)
    try:
        found = fault(Question(**request))
    except MemoryError:
        found = Fault("validation_error", "it takes too much memory to check")
    finally:
        signal.alarm(0)
    return json.dumps(asdict(found) if found else None)


def serve() -> None:
    """Answer questions from standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    with contextlib.suppress(ValueError, OSError):  # not every system lets a process bound its own memory
        resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY if most < 0 else min(MOST_MEMORY, most), most))
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as replies:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        replies.write(READY + "\n")
        for line in sys.stdin:
            replies.write(answered(line) + "\n")


if __name__ == "__main__":
    serve()

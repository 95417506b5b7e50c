"""Compares mathematical answers, one request a line, until its input ends. Run as a program, in a process of its own.

Rules:
* Standard output carries replies alone; whatever a library prints goes nowhere.
* A comparison that goes on after its time kills this process, even when nobody is left who waits for it.
* Nothing of ours is imported: a worker starts as fast as the libraries do.

Source: servers.md §7.3 (2).
"""

import json
import logging
import math
import os
import signal
import sys
from collections.abc import Callable
from typing import Final

READY: Final = "ready"
_GRACE_SECONDS: Final = 5

Compare = Callable[[str, str], float]


def comparison() -> Compare:
    """Return a function of (gold, text): 1.0 when the text's answer equals the gold one, else 0.0."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify  # noqa: PLC0415  a worker's own

    gold_targets = (LatexExtractionConfig(),)
    text_targets = (ExprExtractionConfig(), LatexExtractionConfig())

    def compare(gold: str, text: str) -> float:
        wanted = parse(gold, gold_targets, parsing_timeout=None)
        found = parse(text, text_targets, parsing_timeout=None)
        return float(bool(verify(wanted, found, timeout_seconds=None)))

    return compare


def answered(compare: Compare, line: str) -> str:
    """Return the reply to one request line, whose comparison may not outlive its time."""
    request = json.loads(line)
    signal.alarm(math.ceil(request["seconds"]) + _GRACE_SECONDS)
    try:
        reward = compare(request["gold"], request["text"])
    except Exception:  # noqa: BLE001  a boundary: what a computer algebra system raises on a model's text is no answer
        reward = 0.0
    finally:
        signal.alarm(0)
    return json.dumps({"reward": reward})


def serve() -> None:
    """Answer requests from standard input until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()
    with os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1) as replies:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        compare = comparison()
        replies.write(READY + "\n")
        for line in sys.stdin:
            replies.write(answered(compare, line) + "\n")


if __name__ == "__main__":
    serve()

"""The program of a session: runs pieces of code one after another and keeps their variables.

Rules:
* It runs inside the sandbox, on the standard library alone, and knows nothing of the row.
* It is asked and answers by one line of JSON each, on the socket that it was started with; code does not see that.
* Whatever code raises is an answer. Only a death of the process or its time ends a session.
"""

import ast
import contextlib
import io
import json
import os
import signal
import socket
import sys
import traceback
from typing import Any, Final

MOST_ASKED: Final = 16_000_000
"""Bytes of one question; the server bounds code long before."""


class Bounded(io.TextIOBase):
    """A text of `most` characters at most; what comes after is counted and left out in words."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._pieces: list[str] = []
        self._room = most
        self._left_out = 0

    def writable(self) -> bool:
        """Say that it can be written."""
        return True

    def write(self, text: str, /) -> int:
        """Take a text."""
        kept = text[: self._room]
        if kept:
            self._pieces.append(kept)
            self._room -= len(kept)
        self._left_out += len(text) - len(kept)
        return len(text)

    def text(self) -> str:
        """Return what was kept."""
        said = f"\n[... {self._left_out} characters left out ...]" if self._left_out else ""
        return clean("".join(self._pieces)) + said


class Raised:
    """What the block raised, in words: code may raise anything, and the session goes on."""

    said: str | None = None

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> bool:
        """Take what was raised."""
        del kind, trace
        if error is not None:
            self.said = "".join(traceback.format_exception_only(error)).strip()
        return True


def clean(text: str) -> str:
    """Return a text without what no encoding can write."""
    return text.encode("utf-8", "replace").decode()


def cut(text: str, most: int) -> str:
    """Return the beginning of a text, with the rest counted."""
    left_out = len(text) - most
    return clean(text) if left_out <= 0 else f"{clean(text[:most])}\n[... {left_out} characters left out ...]"


def run(code: str, names: dict[str, Any]) -> str | None:
    """Run code, and return what its last expression stands for; None without one, or for None."""
    tree = ast.parse(code, "<code>")
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<code>", "exec"), names)  # noqa: S102  what this program is for
    if not isinstance(last, ast.Expr):
        return None
    value = eval(compile(ast.Expression(last.value), "<code>", "eval"), names)  # noqa: S307  what this program is for
    return None if value is None else repr(value)


def answered(code: str, names: dict[str, Any], most: int) -> dict[str, Any]:
    """Return the answer to a piece of code; each text of it has `most` characters at most, and a little more."""
    out, err, raised = Bounded(most), Bounded(most), Raised()
    found = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), raised:
        found = run(code, names)
    error = raised.said
    return {
        "success": error is None,
        "stdout": out.text(),
        "stderr": err.text(),
        "error_message": error if error is None else cut(error, most),
        "result": found if found is None else cut(found, most),
    }


def hidden_socket() -> socket.socket:
    """Return the socket that the program was started with, and give code empty streams in its place."""
    line = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  open as long as the program
    return line


def main() -> None:
    """Answer until nobody asks."""
    line = hidden_socket()
    asked = line.makefile("rb")
    own, names = os.getpid(), {"__name__": "__main__", "__builtins__": __builtins__}
    sys.set_int_max_str_digits(0)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["session.py"]
    line.sendall(b'{"ready": true}\n')
    while question := asked.readline(MOST_ASKED):
        wanted = json.loads(question)
        answer = answered(wanted["code"], names, wanted["most"])
        if os.getpid() != own:
            os._exit(0)
        line.sendall(json.dumps(answer).encode() + b"\n")


if __name__ == "__main__":
    main()

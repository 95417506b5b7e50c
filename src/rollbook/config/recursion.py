"""Reading a tree as deep as trees are, whatever other libraries have allowed themselves.

Rules:
* A tree that holds itself ends soon in a RecursionError: a library in the same process may have raised the
  interpreter's limit so far that going down takes minutes, or the stack.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_DEEP: Final = 3000


@contextmanager
def as_deep_as_usual() -> Iterator[None]:
    """Let calls nest no deeper than `_DEEP` while the block runs."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(min(before, _DEEP))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)

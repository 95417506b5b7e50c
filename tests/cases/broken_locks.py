"""A file system on which locks do not work, for a process of its own."""

import fcntl
import os

ALWAYS = 1_000_000


def break_locks(number: int, times: int) -> None:
    """Let the first `times` calls of `flock` end with the error `number`, for as long as this process lives."""
    real, left = fcntl.flock, times

    def flock(descriptor: int, mode: int) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            raise OSError(number, os.strerror(number))
        real(descriptor, mode)

    fcntl.flock = flock

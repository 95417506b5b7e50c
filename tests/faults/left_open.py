"""What this process has open, to be compared before and after."""

import asyncio
import gc
from contextlib import contextmanager, suppress
from pathlib import Path


def open_files() -> set[tuple[str, str]]:
    """Return every open descriptor with what it leads to; the server's ends of its connections are among them."""
    found = set()
    for descriptor in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the descriptor of the listing itself
            found.add((descriptor.name, str(descriptor.readlink())))
    return found


@contextmanager
def nothing_left_open(server):
    """Check that within the block no task and no descriptor was opened that is still there at its end."""
    server.all_closed()
    files, tasks = open_files(), asyncio.all_tasks()
    yield
    assert asyncio.all_tasks() <= tasks, "tasks"
    server.all_closed()
    assert open_files() - files == set(), "descriptors"
    gc.collect(0)

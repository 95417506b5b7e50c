"""How many files a process may have open: a connection is one.

Rules:
* The limit is raised, never lowered, and no further than the system lets us.

Source: servers.md §3.2.
"""

import resource
from typing import Final

_OPEN_FILES: Final = 65_535


def raise_open_file_limit() -> None:
    """Allow this process as many open files as the system lets it, 65535 at most."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))

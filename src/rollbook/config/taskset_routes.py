"""How a taskset is given its environment server, in words that can be typed or pasted as they stand.

Rules:
* A dot in a key of an override begins a key below it, and a colon in a mapping ends a key: a name that holds either is
  written so that it stays one.
* What no override can hold is told as configuration.

Source: collection.md §2.10, §18; servers.md §1.2.
"""

import json
import re
from typing import Final

_KEY: Final = "environment_server_routes"
_SERVER: Final = "<environment server>"
_PART_OF_A_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_IN_A_MAPPING: Final = re.compile(r"[A-Za-z_]([A-Za-z0-9_./:@ +-]*[A-Za-z0-9_/@+-])?")
_ESCAPED: Final = re.compile(r"[: ]")


def how_to_route(taskset: str) -> str:
    """Return what to do so that `taskset` has a route."""
    if _PART_OF_A_KEY.fullmatch(taskset):
        return f"add ++{_KEY}.{taskset}={_SERVER}"
    if _IN_A_MAPPING.fullmatch(taskset):
        key = _ESCAPED.sub(r"\\\g<0>", taskset)
        return f"add '++{_KEY}={{{key}: {_SERVER}}}'"
    return f"add to the configuration: {_KEY}: {{{json.dumps(taskset, ensure_ascii=False)}: {_SERVER}}}"

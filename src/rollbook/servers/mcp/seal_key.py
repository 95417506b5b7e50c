"""The random key that makes a session token one that only its server can write.

Rules:
* Every process has a key of its own; workers of one server are handed theirs by the process that starts them.
* Whoever is handed a key takes it out of the environment, so that what a tool starts does not inherit it.
"""

import os
from functools import cache
from typing import Final

SEAL_KEY_ENV_VAR_NAME: Final = "ROLLBOOK_MCP_SEAL_KEY"
_BYTES: Final = 32


@cache
def seal_key() -> str:
    """Return the key of this process, as text; the same until the process ends."""
    return os.environ.pop(SEAL_KEY_ENV_VAR_NAME, "") or os.urandom(_BYTES).hex()


def hand_down_seal_key() -> None:
    """Let processes that are started from here on, the workers of a server, have the key of this one."""
    os.environ[SEAL_KEY_ENV_VAR_NAME] = seal_key()

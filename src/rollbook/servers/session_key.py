"""Where the id of a cookie session lies in it.

Rules:
* One name for servers and for those who call them.

Source: servers.md §3.4.
"""

from typing import Final

SESSION_ID_KEY: Final = "session_id"

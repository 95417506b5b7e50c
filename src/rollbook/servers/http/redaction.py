"""Addresses as they may stand in a log line.

Rules:
* No user name, password, query or fragment of a URL is ever shown.

Source: servers.md §3.5.
"""

from functools import lru_cache
from urllib.parse import urlsplit, urlunsplit

from rollbook.config.secrets import masked_urls


@lru_cache(maxsize=256)
def redacted_url(url: str) -> str:
    """Return `url` with scheme, host, port and path alone."""
    parts = urlsplit(masked_urls(url, ""))
    return urlunsplit((parts.scheme, parts.netloc, parts.path, "", ""))

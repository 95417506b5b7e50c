"""Names of images, and the mirrors that they are fetched from.

Rules:
* Rewrites are tried in order, and the first that fits is the only one that is applied.

Source: servers.md §9.4.
"""

from collections.abc import Iterable, Mapping

from rollbook.errors import SandboxConfigError


def rewrite_image(image: str, rewrites: Iterable[Mapping[str, str]] | None = None) -> str:
    """Return `image` with the prefix `from` of the first fitting rewrite replaced by its `to`.

    Raises:
        SandboxConfigError: a rewrite without `from` or `to`.

    """
    for rewrite in rewrites or ():
        if "from" not in rewrite or "to" not in rewrite:
            raise SandboxConfigError(f"a rewrite of images is {{from: prefix, to: prefix}}; this is {dict(rewrite)}")
        if image.startswith(rewrite["from"]):
            return rewrite["to"] + image.removeprefix(rewrite["from"])
    return image

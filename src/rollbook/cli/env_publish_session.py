"""One `gym env publish`, from its flags to what it prints.

Rules:
* A validation that left something unchecked is no permission to publish.

Source: servers.md §10.2.
"""

from collections.abc import Mapping
from typing import Any

from rollbook.cli.env_validate_session import checked, tell
from rollbook.cli.event_loop import in_event_loop
from rollbook.cli.terminal import say
from rollbook.config.roots import add_search_dirs
from rollbook.verbs.catalogue_check import catalogue_checked
from rollbook.verbs.validate import manifest_path
from rollbook.verbs.validation import Validation


def publish(given: Mapping[str, Any], *, as_json: bool) -> int:
    """Check what is to be published, print what was found, and return the command's exit code."""
    add_search_dirs(given["search_dir"])
    path = manifest_path(given["name"], given["kind"])
    found = in_event_loop(checked(path, given["name"]))
    found = Validation(found.name, found.manifest, (*found.checks, catalogue_checked(path, given["name"])))
    tell(found, strict=True, as_json=as_json)
    if not as_json:
        say("It can be published." if found.is_valid(strict=True) else "Mend what is told above before publishing it.")
    return 0 if found.is_valid(strict=True) else 1

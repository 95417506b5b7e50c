"""Whose sandbox it is: the run and the user, as metadata.

Rules:
* Whoever set a value is right; nothing is overwritten.
* The name of the user is the account's; nothing else about a person is read.

Source: servers.md §9.4.
"""

import getpass
import os
from collections.abc import Mapping
from typing import Final

RUN_ID_VARIABLES: Final = ("NEMO_GYM_RUN_ID", "ROLLBOOK_RUN_ID", "SLURM_JOB_ID")
RUN_ID_KEY: Final = "run_id"
USER_KEY: Final = "user"


def resolve_run_id(run_id: str | None = None) -> str | None:
    """Return `run_id`, or what the environment says about the run: `NEMO_GYM_RUN_ID`, else the scheduler's job."""
    return run_id or next(filter(None, map(os.environ.get, RUN_ID_VARIABLES)), None)


def resolve_attribution(metadata: Mapping[str, str] | None = None, *, run_id: str | None = None) -> dict[str, str]:
    """Return `metadata` with `user` and `run_id` where they are known and not given."""
    known = {USER_KEY: _user(), RUN_ID_KEY: resolve_run_id(run_id)}
    return {key: value for key, value in known.items() if value} | dict(metadata or {})


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None

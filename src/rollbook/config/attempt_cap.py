"""How many failures a rollout may have: the environment's word, or three.

Rules:
* A value that is no positive integer is warned of, and three holds.

Source: collection.md §4.7.
"""

import logging
from collections.abc import Mapping
from typing import Final

_LOG = logging.getLogger(__name__)
MAX_ATTEMPTS_VARIABLE: Final = "NEMO_GYM_MAX_ROLLOUT_ATTEMPTS"
DEFAULT_ATTEMPTS: Final = 3


def max_rollout_attempts(environ: Mapping[str, str]) -> int:
    """Return the cap that `environ` sets for runs that start now."""
    said = environ.get(MAX_ATTEMPTS_VARIABLE)
    if said is None:
        return DEFAULT_ATTEMPTS
    if said.strip().isdecimal() and int(said) > 0:
        return int(said)
    _LOG.warning("%s=%r is no positive integer; %d holds", MAX_ATTEMPTS_VARIABLE, said, DEFAULT_ATTEMPTS)
    return DEFAULT_ATTEMPTS

"""What is kept and shown of what a server said of an error.

Rules:
* Bounded: `BODY_KEPT` characters on disk, `CAUSE_KEPT` in a line for a person.
* What looks like a credential is masked before anything is kept: servers echo the key that they reject, and agents
  repeat what they were told. What a model said is nobody's error, and stays.
* Masked first, then cut.

Source: collection.md §1.3, §21.1 (10); case RC-48.
"""

import re
from typing import Final

from rollbook.outcomes.credentials import MASK, without_credentials

BODY_KEPT: Final = 2000
CAUSE_KEPT: Final = 200
MORE: Final = "…"
_MOST_BYTES: Final = 4
"""Of one character in UTF-8."""
_AT_THE_CUT: Final = 500
"""Characters that are looked at beyond what is kept, so that a cut leaves no half of a credential."""
_QUOTED: Final = re.compile(r"\bb\\*['\"]")
_CONNECTION: Final = re.compile(
    r"ConnectionKey\(host='(?P<host>[^']*)', port=(?P<port>\w+)[^()]*(?:\([^()]*\)[^()]*)*\)"
)
"""What an HTTP client calls an address, with all that it knows of the way there."""
_ESCAPED_SPACE: Final = re.compile(r"\\+[nrt]")


def kept_text(body: bytes) -> str:
    """Return the beginning of an error's body as it is saved."""
    return beginning(body[: _MOST_BYTES * (BODY_KEPT + _AT_THE_CUT + 1)].decode(errors="replace"), BODY_KEPT)


def beginning(text: str, most: int) -> str:
    """Return the first `most` characters of `text` without credentials; an ellipsis says that there was more.

    No more is looked at than what is kept and the margin behind it, in which a credential that is cut begins.
    """
    looked_at = text[: most + _AT_THE_CUT]
    masked = without_credentials(looked_at)
    if len(looked_at) < len(text):
        return masked[: min(most, max(len(masked) - _AT_THE_CUT, len(MASK)))] + MORE
    return masked if len(masked) <= most else masked[:most] + MORE


def innermost(text: str) -> str:
    """Return what the innermost server said, on one line; empty when nothing was said.

    An error reply quotes the reply that it was given, one level a hop: what stands behind the last `b'` or `b"` is it.
    Where that is an address that could not be reached, it is shortened so far that the reason is shown as well.
    """
    said = _QUOTED.split(text)[-1]
    line = " ".join(_ESCAPED_SPACE.sub(" ", said).replace("\\", "").split()).strip("\"' ")
    return _CONNECTION.sub(r"\g<host>:\g<port>", line)

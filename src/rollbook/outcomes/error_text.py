"""What is kept and shown of what a server said of an error.

Rules:
* Bounded: `BODY_KEPT` characters on disk, `CAUSE_KEPT` in a line for a person.
* What looks like a credential is masked before anything is kept: servers echo the key that they reject, and agents
  repeat what they were told. What a model said is nobody's error, and stays.

Source: collection.md §1.3, §21.1 (10); case RC-48.
"""

import re
from typing import Final

import msgspec

from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import FAILURE_REASON_KEY, NG_FAILURE_JUDGE_ERROR_KEY, NG_FAILURE_MESSAGE_KEY

BODY_KEPT: Final = 2000
CAUSE_KEPT: Final = 200
MASK: Final = "****"
_MOST_BYTES: Final = 4
"""Of one character in UTF-8."""
_AT_THE_CUT: Final = 500
"""Characters that are looked at beyond what is kept, so that a cut leaves no half of a credential."""
_REASONS: Final = (
    NG_FAILURE_MESSAGE_KEY,
    NG_FAILURE_JUDGE_ERROR_KEY,
    FAILURE_REASON_KEY,
    "error_message",
    "error",
)
"""Where a failure that a reply reports says why."""
_QUOTED: Final = re.compile(r"\bb\\*['\"]")
_CONNECTION: Final = re.compile(
    r"ConnectionKey\(host='(?P<host>[^']*)', port=(?P<port>\w+)[^()]*(?:\([^()]*\)[^()]*)*\)"
)
"""What an HTTP client calls an address, with all that it knows of the way there."""
_ESCAPED_SPACE: Final = re.compile(r"\\+[nrt]")
_CREDENTIALS: Final = re.compile(
    r"(?P<before>\b(?:bearer|basic)\s+|\b(?:x-)?api[-_ ]?key\\*[\"']?\s*[:=]\s*\\*[\"']?)"
    r"[^\s\"'\\,;}@]{6,}"
    r"|(?<=://)[^\s/?#@\"']+(?=@)"
    r"|\b(?:sk|pk|rk|nvapi|hf|ghp|gsk|xox[abp]|r8)[-_][A-Za-z0-9_\-]{8,}|\bAIza[A-Za-z0-9_\-]{20,}",
    re.IGNORECASE,
)


def kept_text(body: bytes) -> str:
    """Return the beginning of an error's body as it is saved; an ellipsis says that there was more."""
    looked_at = body[: _MOST_BYTES * (BODY_KEPT + _AT_THE_CUT)].decode(errors="replace")[: BODY_KEPT + _AT_THE_CUT]
    text = without_credentials(looked_at)[:BODY_KEPT]
    return f"{text}…" if len(body) > BODY_KEPT else text


def innermost(text: str) -> str:
    """Return what the innermost server said, on one line; empty when nothing was said.

    An error reply quotes the reply that it was given, one level a hop: what stands behind the last `b'` or `b"` is it.
    Where that is an address that could not be reached, it is shortened so far that the reason is shown as well.
    """
    said = _QUOTED.split(text)[-1]
    line = " ".join(_ESCAPED_SPACE.sub(" ", said).replace("\\", "").split()).strip("\"' ")
    return _CONNECTION.sub(r"\g<host>:\g<port>", line)


def without_credentials(text: str) -> str:
    """Return `text` with keys and tokens masked: after a scheme or `api_key`, in a URL, or by a vendor's own prefix."""
    return _CREDENTIALS.sub(lambda found: f"{found['before'] or ''}{MASK}", text)


def masked_reasons(payload: JsonMapping) -> JsonObject:
    """Return a reported failure's own fields, of which those that say why hold no credential."""
    return dict(payload) | {key: _masked(payload[key]) for key in _REASONS if key in payload}


def _masked(value: object) -> object:
    if isinstance(value, str):
        return without_credentials(value)
    told = msgspec.json.encode(value).decode()
    masked = without_credentials(told)
    if masked == told:
        return value
    try:
        return msgspec.json.decode(masked)
    except msgspec.DecodeError:  # what was masked is no text
        return masked

"""What in a text of an error looks like a credential, and is masked.

Rules:
* A value is masked whatever it looks like where its place says what it is: behind a scheme of `Authorization`, assigned
  to an API key, as the user of a URL.
* Elsewhere it has to look like one as well: it holds a digit, or letters that no word has. So `basic arithmetic`,
  `sk-learn-extra` and `HF_HUB_OFFLINE` stay: the word that is eaten is the one that says what to do.
* Text without a sign of one costs a few searches for literals.

Source: collection.md §1.3, §21.1 (10); case RC-48.
"""

import re
from typing import Final

MASK: Final = "****"
_KEY: Final = r"\b(?:x-)?api[-_ ]?key\\*[\"']?\s*"
_PLACED: Final = re.compile(
    r"(?P<before>\bauthorization\\*[\"']?\s*[:=]\s*\\*[\"']?(?:bearer|basic|token)\s+"
    rf"|{_KEY}[:=](?:\s*\\*[\"'])?)"
    r"[^\s\"'\\,;}@]{6,}",
    re.IGNORECASE,
)
_NAMED: Final = re.compile(
    rf"(?P<before>\b(?:bearer|basic)\s+|{_KEY}[:=]\s+)(?P<value>[^\s\"'\\,;}}@]{{6,}})", re.IGNORECASE
)
_USER_OF_URL: Final = re.compile(r"(?P<before>://)[^\s/?#\"']+(?=@)")
_PREFIXED: Final = re.compile(
    r"(?P<before>)\b(?:sk|SK|pk|rk|nvapi|hf|ghp|gsk|xox[abp]|r8)[-_](?P<value>[A-Za-z0-9_\-]{8,})"
)
_GOOGLES: Final = re.compile(r"(?P<before>)\bAIza[A-Za-z0-9_\-]{20,}")
_OPAQUE: Final = re.compile(r"\d|=\W*\Z|(?<![A-Za-z])(?=[A-Za-z]{12})[A-Za-z]*[a-z][A-Z]{2}|[A-Za-z]{32}")
"""What a key, a token or Base64 holds, and a word, a name in CamelCase or a constant does not."""
_ALL: Final = (_PLACED, _NAMED, _USER_OF_URL, _PREFIXED, _GOOGLES)
_SIGNS: Final = (
    *("bearer", "basic", "authorization", "key", "://", "aiza"),
    *(f"{prefix}{dash}" for prefix in ("sk", "pk", "rk", "nvapi", "hf", "ghp", "gsk", "r8") for dash in "-_"),
    *("xoxa", "xoxb", "xoxp"),
)
"""In small letters: without any of them none of the expressions finds anything."""
_NAMES: Final = (
    *("apikey", "authorization", "password", "passwd", "secret", "credential", "credentials", "cookie"),
    *("accesstoken", "authtoken", "refreshtoken", "accesskey", "privatekey", "secretkey"),
)


def without_credentials(text: str) -> str:
    """Return `text` with keys and tokens masked: by where they stand, or by what they look like."""
    lowered = text.lower()
    if not any(sign in lowered for sign in _SIGNS):
        return text
    for expression in _ALL:
        text = expression.sub(_masked, text)
    return text


def names_credential(key: str) -> bool:
    """Tell whether the text at `key` of an object is a credential."""
    return key.lower().replace("-", "").replace("_", "").replace(" ", "").endswith(_NAMES)


def _masked(found: re.Match[str]) -> str:
    said = found.groupdict()
    if "value" in said and not _OPAQUE.search(said["value"]):
        return found[0]
    return f"{said['before']}{MASK}"

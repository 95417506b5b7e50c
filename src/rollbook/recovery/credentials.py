"""Which parts of a configuration are credentials, so that a digest of it neither holds nor depends on one.

Rules:
* The name of a key decides, by its last words; the value is never guessed at.
* A name that counts or cuts text (`max_output_tokens`, `stop_token`, `answer_key`) is a setting: hiding it would hide
  a change of what is asked.
* What stands at a credential's key is replaced whole, whatever its shape.
* A credential inside a text is replaced where its place tells it: the user of a URL, a query parameter, a bearer, the
  argument of a flag.

Source: collection.md §5.4.
"""

import re
from collections.abc import Mapping
from typing import Final

from rollbook.config.secrets import masked_urls
from rollbook.records.command import CREDENTIAL

MARKER: Final = CREDENTIAL
_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ALWAYS: Final = """
    apikey authorization authtoken accesstoken cookie cookies credential credentials header headers passphrase passwd
    password passwords secret secrets
"""
_OF_TEXT: Final = """
    begin bos cls end eos image mask new pad sep special start stop think thinking tool unk vocab
"""
_OF_DATA: Final = """
    answer cache column field group id input label metric output primary prompt question result reward row score sort
    target task
"""
_OF_ACCESS: Final = "access api auth bearer hf private refresh secret session signing"
_ENDINGS: Final = tuple(_ALWAYS.split())
_HARMLESS_ABOVE: Final = frozenset((_OF_TEXT + _OF_DATA).split())
_SECRET_ABOVE: Final = frozenset(_OF_ACCESS.split())
_PARAMETER: Final = re.compile(r"(?i)([?&](?:[a-z_-]*(?:key|token|secret|password|signature)|sig)=)[^&#\s]+")
_BEARER: Final = re.compile(r"(?i)\b(authorization:\s*\w+\s+|bearer\s+)[\w.~+/=-]{8,}")
_FLAG: Final = re.compile(r"(?s)(--?)([A-Za-z][\w-]*)(=.*)?")


def names_credential(key: str) -> bool:
    """Tell whether what stands at `key` is a credential."""
    words = [word.lower() for word in _WORD.findall(key)]
    if not words:
        return False
    *before, last = words
    above = before[-1] if before else ""
    if last.endswith(_ENDINGS) or words[-3:] == ["access", "key", "id"]:
        return True
    if last in {"token", "key"}:
        return above not in _HARMLESS_ABOVE
    return last in {"tokens", "keys"} and above in _SECRET_ABOVE


def without_credentials(value: object) -> object:
    """Return a copy of a plain value in which every credential is replaced by `MARKER`."""
    if isinstance(value, Mapping):
        return {key: MARKER if names_credential(str(key)) else without_credentials(part) for key, part in value.items()}
    if isinstance(value, list):
        return _without_arguments([without_credentials(part) for part in value])
    return masked_text(value) if isinstance(value, str) else value


def masked_text(text: str) -> str:
    """Return `text` with the credentials whose place in it is known replaced by `MARKER`."""
    shown = _PARAMETER.sub(rf"\g<1>{MARKER}", masked_urls(text, f"{MARKER}@"))
    return _BEARER.sub(rf"\g<1>{MARKER}", shown)


def _without_arguments(parts: list[object]) -> list[object]:
    """Replace the arguments of a command line whose flags name credentials."""
    shown: list[object] = []
    expects = False
    for part in parts:
        flag = _FLAG.fullmatch(part) if isinstance(part, str) else None
        secret = flag is not None and names_credential(flag[2])
        if flag is not None and secret and flag[3]:
            shown.append(f"{flag[1]}{flag[2]}={MARKER}")
        else:
            shown.append(MARKER if expects and (flag is None or not secret) else part)
        expects = secret and flag is not None and not flag[3]
    return shown

"""The command that goes on with a run, made of the one that a session was opened with.

Rules:
* What a credential was replaced by stays in it; a person puts the credential back.
* What says how a run is opened (replace it, go on, release what is held, push a holder aside) is not taken over.

Source: collection.md §1.8, §5.4.
"""

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from posixpath import basename
from typing import Final

CREDENTIAL: Final = "<credential>"
"""What stands for a credential in a command line that is kept or shown."""
PUT_BACK: Final = f"Put back what {CREDENTIAL} stands for before you type it."

_FLAGS: Final = frozenset({"--overwrite", "--resume", "--resubmit", "--take-over"})
_SETTING: Final = re.compile(r"[+~]{0,2}(overwrite|resume_from_cache|resubmit|take_over)(=.*)?")
_OUTPUTS: Final = frozenset({"-o", "--output"})
_OUTPUT: Final = re.compile(r"(?s)--output=.*|-o.+")
_REVERIFY: Final = ("eval", "reverify")
_LIMITS: Final = frozenset({"--limit"})
_LIMIT: Final = re.compile(r"--limit=.*|\+{0,2}limit=.*")
"""A limit of answers counts those that are judged: with it, nothing would be left to go on with."""
_OVERRIDDEN: Final = re.compile(r"\+{0,2}output_jsonl_fpath=")


def resume_words(words: Sequence[str], output: str | None = None) -> tuple[str, ...]:
    """Return the words that go on with the run that `words` started, at `output` if it is given."""
    program, *rest = words
    kept = [word for word in rest if word not in _FLAGS and not _SETTING.fullmatch(word)]
    if tuple(kept[:2]) == _REVERIFY:
        kept = list(_without(kept, _LIMITS, _LIMIT))
    name = basename(program)
    called = "gym" if name.endswith(".py") else name
    if output is None or any(map(_OVERRIDDEN.match, kept)):
        return (called, *kept, "--resume")
    return (called, *_without(kept, _OUTPUTS, _OUTPUT), "--resume", "--output", output)


def _without(words: Sequence[str], flags: Collection[str], joined: re.Pattern[str]) -> Iterator[str]:
    """Yield `words` without these flags and their values, and without words that are both in one."""
    is_value = False
    for word in words:
        if not is_value and word not in flags and not joined.fullmatch(word):
            yield word
        is_value = not is_value and word in flags


def typed(words: Sequence[str]) -> str:
    """Return `words` as a shell reads them."""
    return shlex.join(words)


def words_of(text: str) -> tuple[str, ...]:
    """Return the words that a shell reads in `text`, as `typed` returned it."""
    return tuple(shlex.split(text))

"""An ending → the line that is saved of it.

Rules:
* A row that is no JSON (too deep, a lone surrogate, a value of no JSON type) becomes a failure that keeps the evidence.
* A line that readers would refuse is not written.
* A reply whose text may stand is not serialised again, and a long one is not copied either.
* The outcome of a failures row is what its line reads back as, so that a session and its files never differ.

Source: collection.md §4.2; case RC-09.
"""

from typing import Final

import msgspec

from rollbook.records.codec import RunStamp, encode, saved_row
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import AGENT_RUN_ERROR_FAILURE_CLASS
from rollbook.records.keys import NG_ELAPSED_KEY, NG_FAILURE_EVIDENCE_KEY
from rollbook.records.nesting import not_too_deep
from rollbook.records.outcome import Failed, NeverStarted, Outcome
from rollbook.records.place import File
from rollbook.records.reading import read_row
from rollbook.records.task import Rollout

_EVIDENCE_KEPT: Final = 2000
_LONG: Final = 16 * 1024
"""Bytes that cost more to copy than to be handed over by themselves."""
_NOT_JSON: Final = (TypeError, ValueError, RecursionError, OverflowError, msgspec.MsgspecError)


Pieces = tuple[bytes | memoryview, ...]


class SavedLine(msgspec.Struct, frozen=True):
    """One line in pieces, newline included, the file that it goes to, and the outcome that it tells."""

    file: File
    pieces: Pieces
    outcome: Outcome

    @property
    def line(self) -> bytes:
        """The whole line."""
        return b"".join(self.pieces)


def saved_line(rollout: Rollout, ending: Ending, run: RunStamp, elapsed: float | None = None) -> SavedLine:
    """Return what is appended for `ending`; a failure's row says after how many seconds it came."""
    if ending.kept is not None:
        return _as_it_came(ending.kept, rollout, ending.outcome, run)
    file, row = saved_row(ending, rollout.stamps, run)
    if file is File.FAILURES and elapsed is not None and not isinstance(ending.outcome, NeverStarted):
        row.setdefault(NG_ELAPSED_KEY, round(elapsed, 3))
    try:
        line = not_too_deep(encode(row))
        outcome = ending.outcome if file is File.RESULTS else read_row(line, file).outcome
    except _NOT_JSON as error:
        return _unwritable(rollout, ending, run, error)
    return SavedLine(file, (line + b"\n",), outcome)


def _as_it_came(text: bytes, rollout: Rollout, outcome: Outcome, run: RunStamp) -> SavedLine:
    """Return a reply's own text with our keys appended; the text holds none of them, and no line break."""
    stamps = b"".join((b",", rollout.stamped, run.stamped, b"}\n"))
    pieces = (memoryview(text)[:-1], stamps)
    return SavedLine(File.RESULTS, pieces if len(text) >= _LONG else (b"".join(pieces),), outcome)


def _unwritable(rollout: Rollout, ending: Ending, run: RunStamp, error: Exception) -> SavedLine:
    failed = Failed(
        failure_class=AGENT_RUN_ERROR_FAILURE_CLASS,
        message=f"the result cannot be written as JSON: {error}"[:_EVIDENCE_KEPT],
        kind="persistence_failed",
    )
    evidence = {NG_FAILURE_EVIDENCE_KEY: _shown(ending)}
    file, row = saved_row(Ending(failed, evidence), rollout.stamps, run)
    return SavedLine(file, (encode(row) + b"\n",), failed)


def _shown(ending: Ending) -> str:
    try:
        text = repr(dict(ending.payload))
    except RecursionError:
        text = f"a result nested too deep to be shown, with the keys {sorted(map(str, ending.payload))}"
    return text[:_EVIDENCE_KEPT].encode(errors="replace").decode()

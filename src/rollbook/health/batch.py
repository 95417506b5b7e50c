"""Lines that were examined together, packed so that they travel between processes and lie in memory as columns.

Rules:
* A record costs some forty bytes; what was found in it, and an id that its indices do not give, is kept as text.
* A task is a number: its index, else the ordinal of its record, or the place of a line that cannot be read.

Source: collection.md §7.1, §7.3.
"""

from array import array
from collections.abc import Iterable
from typing import Final

import msgspec

from rollbook.health.examine import Examined, examine
from rollbook.health.tally import Tally

SOUND: Final = 1
BOUND: Final = 2
SUCCESS: Final = 4
NO_STAGE: Final = -1
_UNREADABLE_TASK: Final = 1 << 63
_FILE_SHIFT: Final = 40


class Told(msgspec.Struct, array_like=True, gc=False):
    """What is kept of a record as text."""

    rollout_id: str | None
    findings: list[dict[str, object]]


_TOLD: Final = msgspec.msgpack.Encoder()
_TOLD_BACK: Final = msgspec.msgpack.Decoder(Told)
NOTHING_TOLD: Final = Told(None, [])


class Batch(msgspec.Struct, array_like=True):
    """Examined lines as columns, and the sums over them."""

    tasks: bytes
    rollouts: bytes
    stages: bytes
    attempts: bytes
    flagged: bytes
    unobserved: bytes
    marks: bytes
    lengths: bytes
    told: bytes
    tally: Tally


class Columns:
    """The columns of a batch in the making, or of all batches of a run."""

    __slots__ = ("attempts", "flagged", "lengths", "marks", "rollouts", "stages", "tasks", "unobserved")

    def __init__(self) -> None:
        self.tasks: array[int] = array("Q")
        self.rollouts: array[int] = array("Q")
        self.stages: array[int] = array("q")
        self.attempts: array[int] = array("I")
        self.flagged: array[int] = array("H")
        self.unobserved: array[int] = array("H")
        self.marks: array[int] = array("B")
        self.lengths: array[int] = array("I")

    def __len__(self) -> int:
        """Return how many records there are."""
        return len(self.tasks)

    def append(self, examined: Examined, task: int, length: int) -> None:
        """Add one record, of which `length` bytes are kept as text."""
        self.tasks.append(task)
        self.rollouts.append(examined.rollout)
        self.stages.append(NO_STAGE if examined.stage is None else examined.stage)
        self.attempts.append(examined.attempt)
        self.flagged.append(examined.flagged)
        self.unobserved.append(examined.unobserved)
        marks = SOUND * examined.is_sound | BOUND * examined.is_bound | SUCCESS * examined.has_success
        self.marks.append(marks)
        self.lengths.append(length)

    def extend(self, batch: Batch) -> None:
        """Add the records of `batch`."""
        for name in self.__slots__:
            getattr(self, name).frombytes(getattr(batch, name))

    def batch(self, told: bytes, tally: Tally) -> Batch:
        """Return the columns packed."""
        packed = {name: getattr(self, name).tobytes() for name in self.__slots__}
        return Batch(told=told, tally=tally, **packed)


def examined_batch(lines: Iterable[tuple[int, bytes]], file: int, ordinal: int, ignored: int) -> Batch:
    """Examine the numbered `lines` of the input `file`, the first of which is record `ordinal` of all."""
    columns, told, tally = Columns(), bytearray(), Tally()
    for number, text in lines:
        examined = examine(text, ignored, tally)
        add_record(columns, told, examined, task_number(examined, file, number, ordinal))
        ordinal += 1
    return columns.batch(bytes(told), tally)


def batch_of_one(examined: Examined, file: int, line: int, ordinal: int) -> Batch:
    """Return a batch of a record about which it is known already what is said."""
    columns, told = Columns(), bytearray()
    add_record(columns, told, examined, task_number(examined, file, line, ordinal))
    return columns.batch(bytes(told), Tally())


def add_record(columns: Columns, told: bytearray, examined: Examined, task: int) -> None:
    """Append `examined`, of the task number `task`, to `columns`, and what is kept as text to `told`."""
    named = examined.rollout_id if examined.rollout_id != plain_id(task, examined.rollout) else None
    kept = b""
    if named is not None or examined.findings:
        kept = _TOLD.encode(Told(named, [finding.as_json() for finding in examined.findings]))
    told += kept
    columns.append(examined, task, len(kept))


def told_of(text: bytes) -> Told:
    """Return what was kept as text; nothing where nothing was."""
    return _TOLD_BACK.decode(text) if text else NOTHING_TOLD


def task_number(examined: Examined, file: int, line: int, ordinal: int) -> int:
    """Return the number of a record's task."""
    if not examined.is_line_readable:
        return _UNREADABLE_TASK | file << _FILE_SHIFT | line
    return ordinal if examined.task is None else examined.task


def task_name(task: int) -> int | str:
    """Return a task as reports name it."""
    if task < _UNREADABLE_TASK:
        return task
    place = task - _UNREADABLE_TASK
    return f"__unreadable_record__:input-{place >> _FILE_SHIFT}:line-{place & ((1 << _FILE_SHIFT) - 1)}"


def plain_id(task: int, rollout: int) -> str:
    """Return the id of a rollout that has no other."""
    return f"{task_name(task)}-{rollout}"

"""Tasks whose repeats are scored together: which of them are broken, and so run again whole.

Rules:
* A task is broken when a rollout of it is owed, when an attempt that followed a result of it was lost, or when its
  latest attempts were handed out in different sessions: what was scored together was sent together.
* A broken task runs again whole. What failed for good and what is held go along, for a server that scores repeats
  together waits for all of them; what is in flight is left.
* A task that is not broken is left alone, whatever its rollouts came to.
* Its rollouts are numbered from 0 without a gap, as a plan numbers them.

Source: collection.md §2.5; case RC-89.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Final

from rollbook.records.columns import PLANNED, RolloutColumns, packed
from rollbook.records.disposition import OWED, Disposition

Stands = Callable[[int, int], Disposition]
"""(packed key, seat) → where the rollout stands by itself."""
STAYS_OUT: Final = OWED | {Disposition.IN_FLIGHT}
"""What no task takes along: it runs by itself, or runs already."""
_REASONS: Final = {Disposition.HELD_INTERRUPTED: Disposition.HELD}


def reason_of(disposition: Disposition) -> str:
    """Return why a resume would leave a rollout that stands at `disposition` by itself."""
    return _REASONS.get(disposition, disposition).value


def members(columns: RolloutColumns, task: int) -> Iterator[tuple[int, int]]:
    """Yield (packed key, seat) of each planned rollout of `task`."""
    for rollout in count():
        number = packed(task, rollout)
        seat = columns.seats.get(number)
        if seat is None:
            return
        if columns.flags[seat] & PLANNED:
            yield number, seat


def is_broken(columns: RolloutColumns, task: int, stands: Stands, lost_later: Callable[[int], bool]) -> bool:
    """Whether `task` is broken; `lost_later` says of a seat whether an attempt after what stands did not end."""
    session: int | None = None
    for number, seat in members(columns, task):
        disposition = stands(number, seat)
        if disposition in OWED or (disposition is not Disposition.IN_FLIGHT and lost_later(seat)):
            return True
        own = columns.attempts.session(seat)
        if session is not None and own != session:
            return True
        session = own
    return False


def largest_task(columns: RolloutColumns) -> tuple[int, int] | None:
    """Return the task of which the plan holds most rollouts, and how many; None of an empty plan."""
    planned = zip(columns.seats, columns.flags, strict=True)
    sizes = Counter(number >> 32 for number, flags in planned if flags & PLANNED)
    return max(sizes.items(), key=lambda item: item[1], default=None)

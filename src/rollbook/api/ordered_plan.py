"""The owed rollouts of a session in the order in which a full evaluation sends them.

Rules:
* Turns are taken by environment server, or by agent where a row names no server; with `dispatch_longest_first` what
  failed after the longest time goes first; tasks whose repeats are scored together stay in one piece.
* Where none of that changes anything, the plan is read as it lies on disk, and nothing is kept.
* What is kept of a line is where it lies: rows are read back one by one.

Source: collection.md §3.4; case RC-89.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from rollbook.api.session import PlanLines, Session
from rollbook.ledger.durations import longest_attempts
from rollbook.ledger.reader import plain_lines
from rollbook.plan.order import Order, Spot
from rollbook.plan.rollouts import RolloutReader
from rollbook.records.columns import packed, packed_key
from rollbook.records.reading import PLAN_HEAD
from rollbook.records.shared import Shared
from rollbook.records.task import Rollout

_LINES_AT_ONCE: Final = 1000
_BOM: Final = b"\xef\xbb\xbf"


class OrderedPlan(msgspec.Struct, frozen=True):
    """The plan's rollouts that are owed as the session stands; each pass orders them anew.

    None comes after every so many lines: whoever goes through them may pause there.
    """

    session: Session

    def __iter__(self) -> Iterator[Rollout | None]:
        """Yield rollouts as they are to be sent; one that is owed no more when its turn comes is left out."""
        session = self.session
        whole_tasks, groups = session.rules.group_scored, _groups(session)
        seconds = longest_attempts(session.run.paths.failures) if _is_longest_first(session) else {}
        if len(set(groups[1:])) <= 1 and not seconds and not whole_tasks:
            yield from PlanLines(session)
            return
        order = Order(whole_tasks)
        yield from _taken_in(session, order, groups, seconds)
        yield from _read_back(session, order)


def _is_longest_first(session: Session) -> bool:
    return session.request.settings.dispatch_longest_first


def _groups(session: Session) -> list[int]:
    """Return whose turn each (agent, stamped server) takes, by the number that the fold has for it."""
    turns: Shared[str | None] = Shared()
    return [turns.number(server or agent) for agent, server in session.standings.columns.names]


def _taken_in(session: Session, order: Order, groups: list[int], seconds: Mapping[int, float]) -> Iterator[None]:
    """Put every owed line into `order`, with a pause now and then."""
    columns, is_owed = session.standings.columns, session.standings.owed_test(session.rules)
    lines = plain_lines(session.run.paths.materialized_inputs, session.manifest.plan.bytes)
    for number, offset, length, text in lines:
        head = PLAN_HEAD.decode(text)
        key = packed(head.task, head.rollout)
        if is_owed(key):
            seat = columns.seats.get(key)
            group = groups[columns.group[seat]] if seat is not None else 0
            order.add(Spot(offset, length, head.task, group, seconds.get(key, 0.0)))
        if number % _LINES_AT_ONCE == 0:
            yield None


def _read_back(session: Session, order: Order) -> Iterator[Rollout | None]:
    is_owed = session.standings.owed_test(session.rules)
    rollout_of = RolloutReader(session.directory.find)
    with session.run.paths.materialized_inputs.open("rb", buffering=0) as file:
        for place in order:
            if place is None:
                yield None
                continue
            offset, length = place
            file.seek(offset)
            rollout = rollout_of(file.read(length).removeprefix(_BOM).strip())
            if is_owed(packed_key(rollout.key)):
                yield rollout

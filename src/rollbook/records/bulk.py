"""The fold of very many lines: what `Standings` does one record at a time, done in loops over columns.

Rules:
* Only what is plain is done here: planned lines, reservations, and the first result of a rollout. Whatever else comes
  up is handed to the fold, record by record; a test holds that both ways lead to the same.
* The loops bind what they use to local names: a million rows pass through them.

Source: collection.md §19; case RC-28.
"""

from array import array
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final

import msgspec

from rollbook.records.attempts import ATTEMPT_BITS, MOST_SESSIONS
from rollbook.records.columns import LOW, PLANNED, RolloutColumns, packed_key
from rollbook.records.doubles import earlier_result
from rollbook.records.identity import RUN_ID_KEY
from rollbook.records.nesting import not_too_deep
from rollbook.records.place import File, Place
from rollbook.records.reading import (
    PLAN_HEAD,
    SHALLOW,
    UNREADABLE,
    USAGE_HEAD,
    PlainResult,
    PlainUsage,
    PlainUsageResult,
    ResultHead,
    named,
    read_row,
    usage_of,
)
from rollbook.records.seats import LARGEST, STRIDE
from rollbook.records.standing import Standings
from rollbook.records.table import FILE_NUMBERS, NO_ROW, SCORED_KIND
from rollbook.records.utf8 import utf8

Lines = Iterable[tuple[int, int, int, bytes]]
"""Number, offset, length and text of each line."""
OnFault = Callable[[int, Exception], None]
_RESULTS: Final = FILE_NUMBERS[File.RESULTS]


class _PlainResult(PlainResult, gc=False, kw_only=True):
    """A plain result that may name no run: then it is its rollout's first attempt, unless something was said before."""

    run_id: str | None = msgspec.field(name=RUN_ID_KEY, default=None)  # type: ignore[assignment]


class _UsageResult(PlainUsageResult, gc=False, kw_only=True):
    """The same, and the tokens that it used."""

    run_id: str | None = msgspec.field(name=RUN_ID_KEY, default=None)  # type: ignore[assignment]


_RESULT: Final = msgspec.json.Decoder(_PlainResult)
_USAGE: Final = msgspec.json.Decoder(_UsageResult)


def plain_decoder(*, with_tokens: bool) -> Callable[[bytes], PlainResult]:
    """Return what decodes a line of results that is plain, and raises where it is not."""
    return _USAGE.decode if with_tokens else _RESULT.decode


class Tokens(msgspec.Struct):
    """The tokens that results say they used; what is no number of tokens is left out."""

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0

    def add(self, head: ResultHead) -> None:
        """Add what one result says."""
        usage = usage_of(head)
        if usage is None:
            return
        if type(usage.input_tokens) is int:
            self.input_tokens += usage.input_tokens
        if type(usage.output_tokens) is int:
            self.output_tokens += usage.output_tokens
        if type(usage.total_tokens) is int:
            self.total_tokens += usage.total_tokens

    def add_heads(self, heads: Iterable[PlainResult]) -> None:
        """Add what plain results say that were decoded for it."""
        used = [
            usage
            for head in heads
            if type(head) is _UsageResult and (said := head.response) is not None and (usage := said.usage) is not None
        ]
        self.input_tokens += sum([usage.input_tokens for usage in used])
        self.output_tokens += sum([usage.output_tokens for usage in used])
        self.total_tokens += sum([usage.total_tokens for usage in used])

    def add_plain(self, usage: PlainUsage) -> None:
        """Add what plain results say."""
        self.input_tokens += usage.input_tokens
        self.output_tokens += usage.output_tokens
        self.total_tokens += usage.total_tokens

    def counts(self) -> Mapping[str, int] | None:
        """Return the sums that are not zero, or None when no result named any."""
        sums = {"input_tokens": self.input_tokens, "output_tokens": self.output_tokens}
        sums["total_tokens"] = self.total_tokens
        return {name: count for name, count in sums.items() if count} or None


class Planned(msgspec.Struct):
    """What a plan holds: its rollouts, and the first line of each (agent, stamped server)."""

    rollouts: int = 0
    first_lines: dict[tuple[str | None, str | None], int] = msgspec.field(default_factory=dict)


def fold_plan(lines: Lines, standings: Standings, on_fault: OnFault) -> Planned:
    """Note every planned line; one that names no rollout, or one named before, is a fault."""
    planned, columns = Planned(), standings.columns
    decode, seats, rise = PLAN_HEAD.decode, columns.seats, columns.seats.keys.append
    first = count = len(columns.row)
    highest = seats.highest
    groups, group_of = array("I"), _Groups(columns, planned)
    group = 0
    before: tuple[bytes, object] = (b"", b"")
    for number, _, _, text in lines:
        try:
            head = decode(utf8(text))
            asked = (bytes(head.agent_ref), head.server)
            if asked != before:
                group, before = group_of(asked, number), asked
        except UNREADABLE as error:
            on_fault(number, error)
            continue
        task = head.task
        packed = task << 32 | (task * STRIDE + head.rollout) & LOW
        if highest < packed <= LARGEST:
            rise(packed)
            seat, highest = count, packed
        else:
            seat = seats.add(packed)
            highest = seats.highest
        if seat == count:
            count += 1
            groups.append(group)
        elif seat >= first or not _plan_known(columns, seat, group):
            on_fault(number, ValueError(f"rollout {task}-{head.rollout} is planned twice"))
            continue
        planned.rollouts += 1
    seats.learn()
    columns.grow(count - first)
    columns.flags[first:] = array("B", bytes([PLANNED]) * (count - first))
    columns.group[first:] = groups
    return planned


class _Groups:
    """The number of each (agent, stamped server), with the line that named it first."""

    def __init__(self, columns: RolloutColumns, planned: Planned) -> None:
        self._names = columns.names
        self._lines = planned.first_lines

    def __call__(self, asked: tuple[bytes, object], line: int) -> int:
        name = named(*asked)
        self._lines.setdefault(name, line)
        return self._names.number(name)


def _plan_known(columns: RolloutColumns, seat: int, group: int) -> bool:
    """Note that the plan holds a rollout that something was said of before; False when it held it already."""
    if columns.flags[seat] & PLANNED:
        return False
    columns.flags[seat] |= PLANNED
    columns.group[seat] = group
    return True


def fold_reservations(numbers: list[int], standings: Standings, session: int) -> None:
    """Note attempts that were handed out: task, rollout, attempt, and so on."""
    columns = standings.columns
    bits, sessions = columns.attempts.handed_out.bits, columns.attempts.sessions
    keys, (by_task, by_rollout, start, _) = columns.seats.keys, columns.seats.guess
    count = len(keys)
    session = min(session, MOST_SESSIONS)
    triples = iter(numbers)
    for task, rollout, attempt in zip(triples, triples, triples, strict=True):
        packed = task << 32 | (task * STRIDE + rollout) & LOW
        seat = task * by_task + rollout * by_rollout + start
        if not 0 <= seat < count or keys[seat] != packed:
            seat = columns.seat(packed)
        if attempt < ATTEMPT_BITS:
            bits[seat] |= 1 << attempt
            sessions[seat] = session
        else:
            columns.attempts.reserve(seat, attempt, session)


def fold_results(lines: Lines, standings: Standings, on_fault: OnFault, tokens: Tokens | None = None) -> None:
    """Fold the lines of a results file, and add up in `tokens` what they say they used."""
    columns, table = standings.columns, standings.table
    seat_of, rows, last = columns.seat, columns.row, columns.last
    keys, (by_task, by_rollout, start, _) = columns.seats.keys, columns.seats.guess
    count = len(keys)
    handed_out, ended = columns.attempts.handed_out.bits, columns.attempts.ended.bits
    add_attempt, add_kind, add_source = table.attempts.append, table.kinds.append, table.origins.append
    add_reward, add_file = table.rewards.append, table.files.append
    add_offset, add_length, add_line = table.offsets.append, table.lengths.append, table.lines.append
    decode, source_of = (_RESULT if tokens is None else _USAGE).decode, _Sources(standings)
    source, ref_before, server_before = 0, b"", None
    run_before: str | None = ""
    used_in = used_out = used_in_all = 0
    for number, offset, length, text in lines:
        try:
            head = decode(utf8(text) if length < SHALLOW else not_too_deep(utf8(text)))
            ref = bytes(head.agent_ref)
            if ref != ref_before or head.run_id != run_before or head.server != server_before:
                source, ref_before, run_before, server_before = source_of(head), ref, head.run_id, head.server
        except UNREADABLE:
            _add(standings, number, (offset, length, text), on_fault, tokens)
            continue
        task, attempt = head.task, head.attempt or 0
        packed = task << 32 | (task * STRIDE + head.rollout) & LOW
        at = task * by_task + head.rollout * by_rollout + start
        seat = at if 0 <= at < count and keys[at] == packed else seat_of(packed)
        if last[seat] != NO_ROW or attempt >= ATTEMPT_BITS:
            _add(standings, number, (offset, length, text), on_fault, tokens)
            continue
        if not handed_out[seat] >> attempt & 1:
            if handed_out[seat] or ended[seat] or (head.run_id is not None and standings.first_unreserved is None):
                _add(standings, number, (offset, length, text), on_fault, tokens)
                continue
            standings.unreserved += head.run_id is not None
        if type(head) is _UsageResult and head.response is not None and (usage := head.response.usage) is not None:
            used_in += usage.input_tokens
            used_out += usage.output_tokens
            used_in_all += usage.total_tokens
        rows[seat] = last[seat] = len(table.attempts)
        add_attempt(attempt)
        add_kind(SCORED_KIND)
        add_source(source)
        add_reward(head.reward)
        add_file(_RESULTS)
        add_offset(offset)
        add_length(length)
        add_line(number)
        ended[seat] |= 1 << attempt
    if tokens is not None:
        tokens.add_plain(PlainUsage(used_in, used_out, used_in_all))


def _add(
    standings: Standings, number: int, line: tuple[int, int, bytes], on_fault: OnFault, tokens: Tokens | None
) -> None:
    """Fold one line that is not plain; whatever it says of tokens, which an attempt used once, it is a record."""
    offset, length, text = line
    try:
        record = read_row(text, File.RESULTS, Place(File.RESULTS, offset, length, number))
    except UNREADABLE as error:
        on_fault(number, error)
        return
    columns = standings.columns
    is_new = earlier_result(columns, standings.table, columns.seat(packed_key(record.key)), record) is None
    standings.add(record)
    if tokens is not None and is_new:
        with suppress(*UNREADABLE):
            tokens.add(USAGE_HEAD.decode(not_too_deep(text)))


class _Sources:
    """The number of the run, agent and server that a row names; rows that follow each other mostly name the same."""

    def __init__(self, standings: Standings) -> None:
        self._sources = standings.table.sources
        self._known: dict[tuple[str | None, bytes, str | None], int] = {}

    def __call__(self, head: PlainResult) -> int:
        key = (head.run_id, bytes(head.agent_ref), head.server)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._sources.number((head.run_id, *named(key[1], key[2])))
        return found

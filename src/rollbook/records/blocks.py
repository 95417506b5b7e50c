"""The fold of blocks of lines: what `bulk` does line by line, done for many lines in each step.

Rules:
* Only what is plain is done here; any other line is handed to `bulk`, and a test holds that both ways lead to the same.
* Lines are folded in the order in which they lie.

Source: collection.md §19; case RC-28.
"""

from array import array
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import accumulate
from operator import lt
from typing import Any, Final

from rollbook.records.attempts import ATTEMPT_BITS
from rollbook.records.bulk import Lines, OnFault, Planned, Tokens, fold_plan, fold_results, plain_decoder
from rollbook.records.columns import LOW, PLANNED
from rollbook.records.nesting import not_too_deep
from rollbook.records.place import Block, File
from rollbook.records.reading import PLAN_HEAD, SHALLOW, UNREADABLE, PlainResult, named
from rollbook.records.seats import LARGEST, STRIDE
from rollbook.records.standing import Standings
from rollbook.records.table import FILE_NUMBERS, NO_ROW, SCORED_KIND
from rollbook.records.utf8 import check_utf8

_RESULTS: Final = bytes([FILE_NUMBERS[File.RESULTS]])
_SCORED: Final = array("i", [SCORED_KIND]).tobytes()
_NO_ROW: Final = array("i", [NO_ROW]).tobytes()
_FIRST_ATTEMPT: Final = array("H", [1]).tobytes()
_ONE_BY_ONE: Final = 16
"""So many lines are handed over with one that is not plain: such lines mostly lie together."""


def fold_plan_blocks(blocks: Iterable[Block], standings: Standings, on_fault: OnFault) -> Planned:
    """Note every planned line, as `fold_plan` does."""
    planned = Planned()
    for block in blocks:
        if not _rises(block, standings, planned):
            own = fold_plan(lines_of(block), standings, on_fault)
            planned.rollouts += own.rollouts
            planned.first_lines = own.first_lines | planned.first_lines
    return planned


def _rises(block: Block, standings: Standings, planned: Planned) -> bool:
    """Note the lines of a block whose rollouts are new and in order; where they are not, do nothing: False."""
    columns, decode = standings.columns, PLAN_HEAD.decode
    try:
        check_utf8(block.texts)
        heads = list(map(decode, block.texts))
        name = named(bytes(heads[0].agent_ref), heads[0].server)
    except UNREADABLE:
        return False
    if not (_are_alike([head.agent_ref for head in heads]) and _are_alike([head.server for head in heads])):
        return False
    keys = [head.task << 32 | (head.task * STRIDE + head.rollout) & LOW for head in heads]
    if not _append(standings, keys):
        return False
    columns.seats.learn()
    planned.first_lines.setdefault(name, block.number)
    columns.flags[-len(keys) :] = array("B", bytes([PLANNED]) * len(keys))
    columns.group[-len(keys) :] = array("I", [columns.names.number(name)]) * len(keys)
    planned.rollouts += len(keys)
    return True


def _append(standings: Standings, keys: list[int]) -> bool:
    """Give each key the next seat; do nothing where one is not above all that were there before it: False."""
    columns = standings.columns
    if not (columns.seats.highest < keys[0] and keys[-1] <= LARGEST and all(map(lt, keys, keys[1:]))):
        return False
    columns.seats.keys.extend(keys)
    columns.grow(len(keys))
    return True


def fold_result_blocks(
    blocks: Iterable[Block], standings: Standings, on_fault: OnFault, tokens: Tokens | None = None
) -> None:
    """Fold a results file, and add up in `tokens` what its lines say they used, as `fold_results` does."""
    fold = _Results(standings, on_fault, tokens)
    for block in blocks:
        fold.add(block)


class _Results:
    """Results that are folded block by block."""

    def __init__(self, standings: Standings, on_fault: OnFault, tokens: Tokens | None) -> None:
        self._standings = standings
        self._on_fault = on_fault
        self._tokens = tokens
        self._decode = plain_decoder(with_tokens=tokens is not None)

    def add(self, block: Block) -> None:
        """Fold the lines of a block."""
        lines, texts = block.lengths, block.texts
        start = 0
        try:
            check_utf8(texts)
            if max(lines) >= SHALLOW:
                texts = list(map(not_too_deep, texts))
        except UNREADABLE:
            self._one_by_one(lines_of(block))
            return
        while start < len(texts):
            heads: list[PlainResult] = []
            with suppress(*UNREADABLE):
                heads.extend(map(self._decode, texts[start:] if start else texts))
            if heads:
                self._fold(block.part(start, start + len(heads)), heads)
            start += len(heads)
            if start < len(texts):
                self._one_by_one(lines_of(block.part(start, start + _ONE_BY_ONE)))
                start += _ONE_BY_ONE

    def _one_by_one(self, lines: Lines) -> None:
        fold_results(lines, self._standings, self._on_fault, self._tokens)

    def _fold(self, block: Block, heads: list[PlainResult]) -> None:
        """Fold lines that were decoded to `heads`; those that are not their rollout's first, one by one."""
        try:
            sources = self._sources(heads)
        except UNREADABLE:
            self._one_by_one(lines_of(block))
            return
        keys = [head.task << 32 | (head.task * STRIDE + head.rollout) & LOW for head in heads]
        attempts = [head.attempt or 0 for head in heads]
        first = self._first_of_row(heads[0], keys)
        if first is not None and not any(attempts) and self._all_stand(first, heads):
            self._keep(block, heads, sources, attempts)
            return
        done = 0
        for at in self._others(heads, self._seats(heads, keys), attempts):
            self._keep(block.part(done, at), heads[done:at], sources[done:at], attempts[done:at])
            self._one_by_one(lines_of(block.part(at, at + 1)))
            done = at + 1
        self._keep(block.part(done, len(heads)), heads[done:], sources[done:], attempts[done:])

    def _first_of_row(self, head: PlainResult, keys: list[int]) -> int | None:
        """Return the seat of the first of `keys` where those of the others follow it, one by one."""
        seats, first = self._standings.columns.seats, len(self._standings.columns.row)
        if _append(self._standings, keys):
            seats.learn()
            return first
        (by_task, by_rollout, start, _), there = seats.guess, seats.keys
        guess = head.task * by_task + head.rollout * by_rollout + start
        if guess < 0 or not isinstance(there, array) or keys[-1] > LARGEST:
            return None
        return guess if there[guess : guess + len(keys)] == array("Q", keys) else None

    def _all_stand(self, first: int, heads: list[PlainResult]) -> bool:
        """Let first attempts stand, whose seats follow each other; where one does not, do nothing: False."""
        columns, count = self._standings.columns, len(heads)
        seats, none, ones = slice(first, first + count), bytes(2 * count), _FIRST_ATTEMPT * count
        handed_out, ended = columns.attempts.handed_out.bits, columns.attempts.ended.bits
        if columns.last[seats].tobytes() != _NO_ROW * count or ended[seats].tobytes() != none:
            return False
        numbers = handed_out[seats].tobytes()
        if numbers != ones:
            are_of_runs = sum([head.run_id is not None for head in heads])
            if numbers != none or (are_of_runs and self._standings.first_unreserved is None):
                return False
            self._standings.unreserved += are_of_runs
        row = len(self._standings.table)
        columns.row[seats] = columns.last[seats] = array("i", range(row, row + count))
        ended[seats] = array("H", ones)
        return True

    def _sources(self, heads: list[PlainResult]) -> list[int]:
        number = self._standings.table.sources.number
        refs, runs, servers = (
            [head.agent_ref for head in heads],
            [head.run_id for head in heads],
            [head.server for head in heads],
        )
        if _are_alike(refs) and _are_alike(runs) and _are_alike(servers):
            return [number((runs[0], *named(bytes(refs[0]), servers[0])))] * len(heads)
        names = [named(bytes(ref), server) for ref, server in zip(refs, servers, strict=True)]
        return [number((run, *name)) for run, name in zip(runs, names, strict=True)]

    def _seats(self, heads: list[PlainResult], keys: list[int]) -> list[int]:
        """Return the seats of what the lines are about, in order; new ones where nothing named them before."""
        columns = self._standings.columns
        seat_of, (by_task, by_rollout, start, _), there = columns.seat, columns.seats.guess, columns.seats.keys
        count = len(there)
        guesses = [head.task * by_task + head.rollout * by_rollout + start for head in heads]
        return [
            guess if 0 <= guess < count and there[guess] == key else seat_of(key)
            for guess, key in zip(guesses, keys, strict=True)
        ]

    def _others(self, heads: list[PlainResult], seats: Iterable[int], attempts: list[int]) -> Iterator[int]:
        """Let each line stand that is its rollout's first; yield each other one, which is folded meanwhile."""
        columns, table = self._standings.columns, self._standings.table
        rows, last = columns.row, columns.last
        handed_out, ended = columns.attempts.handed_out.bits, columns.attempts.ended.bits
        row = len(table)
        for at, (seat, attempt) in enumerate(zip(seats, attempts, strict=True)):
            is_first = last[seat] == NO_ROW and attempt < ATTEMPT_BITS
            if is_first and (handed_out[seat] >> attempt & 1 or self._is_unheard_of(seat, heads[at])):
                rows[seat] = last[seat] = row
                row += 1
                ended[seat] |= 1 << attempt
            else:
                yield at
                row = len(table)

    def _is_unheard_of(self, seat: int, head: PlainResult) -> bool:
        """Whether no number of a rollout was handed out; the first such line of a run with a name is looked at."""
        standings, attempts = self._standings, self._standings.columns.attempts
        is_of_run: bool = head.run_id is not None
        if attempts.handed_out.bits[seat] or attempts.ended.bits[seat]:
            return False
        if is_of_run and standings.first_unreserved is None:
            return False
        standings.unreserved += is_of_run
        return True

    def _keep(self, block: Block, heads: list[PlainResult], sources: list[int], attempts: list[int]) -> None:
        """Keep lines that stand."""
        table, count = self._standings.table, len(heads)
        table.attempts.fromlist(attempts)
        table.kinds.frombytes(_SCORED * count)
        table.origins.fromlist(sources)
        table.rewards.fromlist([head.reward for head in heads])
        table.files.frombytes(_RESULTS * count)
        table.offsets.extend(array("q", accumulate(block.lengths[:-1], initial=block.offset)) if count else ())
        table.lengths.fromlist(block.lengths)
        table.lines.extend(array("I", range(block.number, block.number + count)))
        if self._tokens is not None:
            self._tokens.add_heads(heads)


def lines_of(block: Block) -> Iterator[tuple[int, int, int, bytes]]:
    """Yield the lines of a block one by one, but for those of white space."""
    offset = block.offset
    for number, (length, text) in enumerate(zip(block.lengths, block.texts, strict=True), block.number):
        if text.strip():
            yield number, offset, length, text
        offset += length


def _are_alike(values: list[Any]) -> bool:
    return values.count(values[0]) == len(values)

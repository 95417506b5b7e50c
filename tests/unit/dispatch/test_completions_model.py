"""Every interleaving of three pieces of work with those who fetch them and those who end it, against a slow model."""

import asyncio
import itertools

import pytest

from rollbook.dispatch import completions
from rollbook.dispatch.completions import BoundedCompletions, EagerCompletions

COUNT = 3
CUT = "cut"
STOP = "stop"


class Contract:
    """What is promised, in lists. Work is known by its number; awaitables by the order in which they are awaited."""

    def __init__(self, limit):
        self.limit = limit
        self.handed, self.awaited, self.closed = 0, 0, False
        self.begun, self.pending, self.ready, self.waiting, self.got = 0, [], [], [], {}

    def moves(self):
        yield "next"
        if self.awaited < self.handed:
            yield "await"
        yield from self.pending

    def fill(self):
        room = COUNT if self.limit is None else self.limit
        while not self.closed and self.begun < COUNT and len(self.pending) + len(self.ready) < room:
            self.pending.append(self.begun)
            self.begun += 1

    def do(self, move):
        if move == "next":
            return self.next()
        if move == "await":
            return self.wait()
        if move in {"aclose", "drain"}:
            return self.end(drain=move == "drain")
        self.pending.remove(move)
        if self.waiting:
            self.got[self.waiting.pop(0)] = move
            self.fill()
        else:
            self.ready.append(move)
        return None

    def next(self):
        if self.closed or self.handed == COUNT:
            return STOP
        self.handed += 1
        if self.limit is None:
            self.fill()
        return None

    def wait(self):
        me = self.awaited
        self.awaited += 1
        if self.limit is not None:
            self.fill()
        if self.ready:
            self.got[me] = self.ready.pop(0)
            self.fill()
        elif self.closed:
            self.got[me] = CUT
        else:
            self.waiting.append(me)

    def end(self, *, drain):
        unclaimed = self.ready if drain and not self.closed else []
        if not self.closed and (drain or self.limit is not None):
            self.ready = []
        self.closed = True
        self.got |= dict.fromkeys(self.waiting, CUT)
        self.waiting, self.pending = [], []
        return list(unclaimed)


class Subject:
    """The same moves on the real thing: work 0 returns, work 1 raises, work 2 is cancelled from elsewhere."""

    def __init__(self, limit):
        self.gates = [asyncio.get_running_loop().create_future() for _ in range(COUNT)]
        self.begun = 0
        starts = [self.starter(number) for number in range(COUNT)]
        self.iterator = (
            EagerCompletions(starts, COUNT) if limit is None else BoundedCompletions(starts, COUNT, limit=limit)
        )
        self.handed, self.awaited, self.got = [], [], {}

    def starter(self, number):
        def start():
            self.begun += 1
            return self.work(number)

        return start

    async def work(self, number):
        await self.gates[number]
        if number == 1:
            raise ValueError(number)
        if number == 2:
            raise asyncio.CancelledError
        return number

    async def do(self, move):
        if move == "next":
            handed = next(self.iterator, STOP)
            if handed is STOP:
                return STOP
            self.handed.append(handed)
        elif move == "await":
            self.awaited.append(asyncio.ensure_future(self.fetch(len(self.awaited))))
        elif move == "aclose":
            await self.iterator.aclose()
            return []
        elif move == "drain":
            return [self.told(future) for future in await self.iterator.aclose_and_drain()]
        else:
            self.gates[move].set_result(None)
        return None

    async def fetch(self, me):
        handed = self.handed[me]
        try:
            self.got[me] = await handed
        except ValueError as error:
            self.got[me] = error.args[0]
        except asyncio.CancelledError:
            self.got[me] = CUT

    @staticmethod
    def told(future):
        assert future.done()
        if future.cancelled():
            return 2
        return future.exception().args[0] if future.exception() else future.result()


def as_seen(got):
    """Work 2 ends cancelled: its outcome looks to whoever awaits it like being cut off."""
    return {me: CUT if outcome == 2 else outcome for me, outcome in got.items()}


def every_beginning(limit):
    """Yield each order of moves that can come before the end."""
    open_ones = [()]
    while open_ones:
        moves = open_ones.pop()
        yield moves
        contract = Contract(limit)
        for move in moves:
            contract.do(move)
        if contract.handed < COUNT or contract.awaited < COUNT or contract.pending:
            open_ones += [(*moves, move) for move in contract.moves() if move != "next" or contract.handed < COUNT]


async def settle(turns=3):
    for _ in range(turns):
        await asyncio.sleep(0)


async def compared(limit, moves):
    contract, subject = Contract(limit), Subject(limit)
    for move in moves:
        expected = contract.do(move)
        told = await subject.do(move)
        if not contract.closed:
            await settle(1 if move == "next" else 3)
        assert (told, subject.begun) == (expected, contract.begun), moves
    await settle()
    assert as_seen(subject.got) == as_seen(contract.got), moves
    return subject


@pytest.mark.parametrize("limit", [None, 1, 2, 3], ids=["eager", "bounded 1", "bounded 2", "bounded 3"])
@pytest.mark.parametrize("end", ["aclose", "drain"])
async def test_every_interleaving_ends_as_the_contract_says(limit, end):
    before = asyncio.all_tasks()
    count = 0
    for moves in every_beginning(limit):
        unawaited = ["await"] * (moves.count("next") - moves.count("await"))
        subject = await compared(limit, [*moves, end, "next", *unawaited, "drain", "aclose"])
        assert subject.iterator._tasks == {}
        count += 1
    assert asyncio.all_tasks() == before
    assert not completions._running
    assert count > 100


@pytest.mark.parametrize("limit", [None, 1, 2, 3], ids=["eager", "bounded 1", "bounded 2", "bounded 3"])
@pytest.mark.parametrize("order", list(itertools.permutations(range(COUNT))))
async def test_whatever_runs_to_its_end_is_fetched_to_the_last(limit, order):
    contract, moves = Contract(limit), ["next", "await"] * COUNT
    for move in moves:
        contract.do(move)
    while contract.pending:
        moves.append(next(number for number in order if number in contract.pending))
        contract.do(moves[-1])
    subject = await compared(limit, moves)
    assert sorted(contract.got.values()) == list(range(COUNT))
    assert next(subject.iterator, STOP) is STOP

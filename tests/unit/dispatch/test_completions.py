import asyncio
import gc
import warnings

import pytest

from rollbook.dispatch import completions as module
from rollbook.dispatch.completions import BoundedCompletions, EagerCompletions


class Works:
    """Work that ends when it is told to; `begun` and `cut` are numbers in the order in which it happened."""

    def __init__(self, count):
        self.gates = [asyncio.get_running_loop().create_future() for _ in range(count)]
        self.begun, self.cut = [], []

    @property
    def starts(self):
        return [lambda number=number: self.work(number) for number in range(len(self.gates))]

    async def work(self, number):
        self.begun.append(number)
        try:
            return await self.gates[number]
        except asyncio.CancelledError:
            self.cut.append(number)
            raise

    def eager(self):
        return EagerCompletions(self.starts, len(self.gates))

    def bounded(self, limit):
        return BoundedCompletions(self.starts, len(self.gates), limit)


async def settle():
    for _ in range(5):
        await asyncio.sleep(0)


async def done(future):
    """Return in the turn of the loop in which `future` is done, before anybody who waits for it goes on."""
    for _ in range(10):
        if future.done():
            return
        await asyncio.sleep(0)
    raise AssertionError("it does not end")


def both(works, limit=2):
    return [works.eager(), works.bounded(limit)]


async def test_v20_a_drain_returns_what_is_finished_cuts_what_runs_and_starts_nothing():
    works = Works(4)
    iterator = works.bounded(2)
    first = asyncio.ensure_future(next(iterator))
    await settle()
    works.gates[0].set_result("r0")
    assert await first == "r0"
    works.gates[1].set_result("r1")
    await settle()
    (returned,) = await iterator.aclose_and_drain()
    assert (returned.done(), await returned) == (True, "r1")
    assert (works.begun, works.cut) == ([0, 1, 2], [2])
    assert await iterator.aclose_and_drain() == []
    assert list(iterator) == []


async def test_v20_as_first_written_needs_a_waiter_that_was_cancelled():
    works = Works(3)
    iterator = works.bounded(2)
    waiter = asyncio.ensure_future(next(iterator))
    await settle()
    waiter.cancel()
    await settle()
    works.gates[0].set_result("r0")
    await settle()
    (returned,) = await iterator.aclose_and_drain()
    assert await returned == "r0"
    assert (works.begun, works.cut) == ([0, 1], [1])
    assert await iterator.aclose_and_drain() == []


async def test_eager_work_begins_in_its_order_with_the_first_next_and_not_before():
    works = Works(3)
    iterator = works.eager()
    await settle()
    assert works.begun == []
    next(iterator)
    await settle()
    assert works.begun == [0, 1, 2]


async def test_bounded_work_begins_with_the_first_await_and_not_with_next():
    works = Works(3)
    iterator = works.bounded(2)
    handed = list(iterator)
    await settle()
    assert (len(handed), works.begun) == (3, [])
    waiter = asyncio.ensure_future(handed[2])
    await settle()
    assert works.begun == [0, 1]
    works.gates[1].set_result("b")
    assert await waiter == "b"
    await iterator.aclose()


async def test_outcomes_come_in_the_order_in_which_they_end():
    works = Works(3)
    waiting = [asyncio.ensure_future(handed) for handed in works.eager()]
    await settle()
    for number in (2, 0, 1):
        works.gates[number].set_result(number)
        await settle()
    assert await asyncio.gather(*waiting) == [2, 0, 1]


async def test_work_that_fails_raises_to_one_and_stops_no_other():
    works = Works(3)
    iterator = works.bounded(1)
    works.gates[0].set_exception(KeyError("r0"))
    works.gates[1].set_result("r1")
    works.gates[2].set_result("r2")
    with pytest.raises(KeyError, match="r0"):
        await next(iterator)
    assert [await handed for handed in iterator] == ["r1", "r2"]


async def test_with_a_limit_of_one_many_waiters_are_all_served():
    works = Works(5)
    waiting = [asyncio.ensure_future(handed) for handed in works.bounded(1)]
    for number, gate in enumerate(works.gates):
        await settle()
        assert works.begun == list(range(number + 1))
        gate.set_result(number)
    assert await asyncio.gather(*waiting) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("end", ["aclose", "aclose_and_drain"])
async def test_ending_before_anything_was_fetched_starts_nothing(end):
    works = Works(2)
    for iterator in both(works):
        assert not await getattr(iterator, end)()
        assert not await getattr(iterator, end)()
        assert list(iterator) == []
    assert works.begun == []


async def test_whoever_waits_when_it_ends_is_told_so_without_having_been_cancelled():
    for iterator in both(Works(3)):
        waiter = asyncio.ensure_future(next(iterator))
        await settle()
        await iterator.aclose()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        assert waiter.cancelling() == 0


async def test_after_closing_an_awaitable_still_finds_a_result_in_an_eager_iterator_and_none_in_a_bounded_one():
    found = []
    for make in (Works.eager, lambda works: works.bounded(2)):
        works = Works(3)
        iterator = make(works)
        claimed, later = next(iterator), next(iterator)
        first = asyncio.ensure_future(claimed)
        await settle()
        works.gates[0].set_result("r0")
        works.gates[1].set_result("r1")
        await first
        await settle()
        await iterator.aclose()
        found += await asyncio.gather(later, return_exceptions=True)
    assert found[0] == "r1"
    assert isinstance(found[1], asyncio.CancelledError)


async def test_an_outcome_that_was_claimed_is_not_drained_as_well():
    works = Works(2)
    iterator = works.eager()
    waiter = asyncio.ensure_future(next(iterator))
    await settle()
    works.gates[0].set_result("r0")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert await iterator.aclose_and_drain() == []
    assert await waiter == "r0"


async def test_an_outcome_whose_waiter_is_cancelled_before_taking_it_goes_to_the_next():
    works = Works(2)
    iterator = works.bounded(1)
    quick, slow = (asyncio.ensure_future(handed) for handed in iterator)
    await settle()
    waiter = iterator._claims._waiting[0]
    works.gates[0].set_result("r0")
    await done(waiter)
    quick.cancel()
    await settle()
    assert quick.cancelled()
    assert await slow == "r0"


async def test_an_outcome_whose_only_waiter_is_cancelled_before_taking_it_stands_before_a_later_one():
    works = Works(2)
    iterator = works.eager()
    quick = asyncio.ensure_future(next(iterator))
    await settle()
    waiter = iterator._claims._waiting[0]
    for number, gate in enumerate(works.gates):
        gate.set_result(f"r{number}")
    await done(waiter)
    quick.cancel()
    await settle()
    returned = await iterator.aclose_and_drain()
    assert [await one for one in returned] == ["r0", "r1"]


async def test_an_outcome_that_ended_in_this_very_turn_of_the_loop_is_drained():
    works = Works(2)
    iterator = works.eager()
    next(iterator)
    await settle()
    works.gates[0].set_result("r0")
    task = next(iter(iterator._tasks))
    await done(task)
    (returned,) = await iterator.aclose_and_drain()
    assert await returned == "r0"


async def test_what_was_cancelled_before_a_drain_comes_back_cancelled_and_what_it_cancels_does_not():
    works = Works(2)
    iterator = works.eager()
    next(iterator)
    await settle()
    works.gates[1].cancel()
    await settle()
    (returned,) = await iterator.aclose_and_drain()
    assert returned.cancelled()
    assert works.cut == [1, 0]


async def test_a_drain_has_its_outcomes_before_it_first_waits():
    async def late():
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            works.gates[0].set_result("too late")
            raise

    works = Works(1)
    iterator = EagerCompletions([late, *works.starts], 2)
    next(iterator)
    await settle()
    assert await iterator.aclose_and_drain() == []


async def test_closing_after_a_drain_and_draining_after_closing_return_nothing():
    for iterator in both(Works(2)):
        waiter = asyncio.ensure_future(next(iterator))
        await settle()
        await iterator.aclose()
        assert await iterator.aclose_and_drain() == []
        assert waiter.cancelled()


@pytest.fixture
def complaints(caplog):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield lambda: [str(one.message) for one in found] + [record.getMessage() for record in caplog.records]


async def test_outcomes_and_awaitables_that_nobody_fetched_are_no_reason_to_complain(complaints):
    works = Works(3)
    iterator = works.eager()
    handed = list(iterator)
    await settle()
    works.gates[0].set_exception(ValueError("nobody looks"))
    await settle()
    drained = await iterator.aclose_and_drain()
    del iterator, handed, drained, works
    gc.collect()
    await settle()
    assert complaints() == []


async def test_the_work_of_an_abandoned_iterator_runs_on(complaints):
    works, ended = Works(2), []

    async def run(number):
        ended.append(await works.work(number))

    iterator = EagerCompletions([lambda: run(0), lambda: run(1)], 2)
    next(iterator)
    del iterator
    gc.collect()
    await settle()
    works.gates[0].set_result("r0")
    works.gates[1].set_result("r1")
    await settle()
    gc.collect()
    assert ended == ["r0", "r1"]
    assert not module._running
    assert complaints() == []


async def test_awaitables_serve_wherever_a_coroutine_does():
    works = Works(3)
    for number, gate in enumerate(works.gates):
        gate.set_result(number)
    one, two, three = works.eager()
    async with asyncio.TaskGroup() as group:
        task = group.create_task(one)
    assert [task.result(), await asyncio.wait_for(two, 60), *await asyncio.gather(three)] == [0, 1, 2]


async def test_work_that_will_not_be_cancelled_is_waited_for_and_not_returned():
    async def stubborn():
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            await asyncio.sleep(0)
        return "too late"

    iterator = EagerCompletions([stubborn], 1)
    next(iterator)
    await settle()
    assert await iterator.aclose_and_drain() == []
    assert not module._running

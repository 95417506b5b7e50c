"""Waiting for the first of several things, and for what must not be cut short."""

import asyncio

import pytest

from rollbook.dispatch.waiting import first_of, to_the_end


async def test_the_wait_ends_with_the_first_and_leaves_nothing_running():
    never = asyncio.Event()
    await first_of(never.wait(), asyncio.sleep(0), never.wait())
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_what_the_first_raises_is_raised():
    async def broken():
        raise ValueError("ours")

    with pytest.raises(ValueError, match="ours"):
        await first_of(asyncio.Event().wait(), broken())


async def test_a_cancellation_is_raised_after_the_work_is_done():
    gate, done = asyncio.Event(), []

    async def work():
        await gate.wait()
        done.append(True)

    waiting = asyncio.create_task(to_the_end(work()))
    for _ in range(3):
        await asyncio.sleep(0)
        waiting.cancel()
    await asyncio.sleep(0)
    assert not waiting.done()
    gate.set()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert done == [True]


async def test_what_the_work_raises_is_raised_even_to_one_who_was_cancelled():
    gate = asyncio.Event()

    async def work():
        await gate.wait()
        raise ValueError("disk")

    waiting = asyncio.create_task(to_the_end(work()))
    await asyncio.sleep(0)
    waiting.cancel()
    gate.set()
    with pytest.raises(ValueError, match="disk"):
        await waiting

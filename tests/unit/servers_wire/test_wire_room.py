"""Who may open a connection where only so many fit."""

import asyncio

import pytest

from rollbook.servers.wire.room import Room


class Waiting:
    """Requests that want a connection each; `up` are those that have one, by number, in order."""

    def __init__(self, most):
        self.up = []
        self.room = Room(self.up, most)

    async def _opens(self, number):
        await self.room.enter()
        self.up.append(number)
        self.room.opening_ended()

    async def asked(self, *numbers):
        tasks = [asyncio.create_task(self._opens(number)) for number in numbers]
        await turns()
        return tasks

    async def ends(self, number):
        self.up.remove(number)
        self.room.has_changed()
        await turns()


async def turns():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_connection_beyond_the_most_waits_until_another_has_ended_and_has_its_turn_in_order():
    waiting = Waiting(2)
    await waiting.asked(1, 2, 3, 4)
    assert waiting.up == [1, 2]
    assert waiting.room.is_wanted
    await waiting.ends(2)
    assert waiting.up == [1, 3]
    await waiting.ends(1)
    assert waiting.up == [3, 4]
    assert not waiting.room.is_wanted


@pytest.mark.parametrize("had_its_turn", [False, True])
async def test_one_who_gives_up_costs_nobody_its_turn(had_its_turn):
    waiting = Waiting(1)
    _, second, _ = await waiting.asked(1, 2, 3)
    if had_its_turn:
        waiting.up.remove(1)
        waiting.room.has_changed()
    second.cancel()
    await turns()
    if not had_its_turn:
        await waiting.ends(1)
    assert waiting.up == [3]


async def test_a_connection_that_does_not_come_up_gives_its_room_back():
    waiting = Waiting(1)
    await waiting.room.enter()
    await waiting.asked(1)
    assert waiting.up == []
    waiting.room.opening_ended()
    await turns()
    assert waiting.up == [1]


async def test_that_requests_wait_is_told_once(caplog):
    waiting = Waiting(1)
    await waiting.asked(1, 2, 3)
    await waiting.ends(1)
    await waiting.ends(2)
    (told,) = caplog.records
    assert "ulimit -n" in told.getMessage()

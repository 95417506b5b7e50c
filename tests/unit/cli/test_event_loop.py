"""The loop of a command, from its first step to its closing."""

import asyncio
import os
import signal

from rollbook.cli.event_loop import in_event_loop


def test_an_interrupt_while_the_loop_closes_takes_nothing_from_what_was_done():
    left_over = []

    async def interrupts_when_it_is_ended():
        try:
            await asyncio.Event().wait()
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0)

    async def work():
        left_over.append(asyncio.create_task(interrupts_when_it_is_ended()))
        await asyncio.sleep(0)
        return "done"

    before = signal.getsignal(signal.SIGINT)
    assert in_event_loop(work()) == "done"
    assert signal.getsignal(signal.SIGINT) is before

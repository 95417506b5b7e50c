"""Which signals stop a run."""

import asyncio
import os
import signal

import pytest

from rollbook.cli.signals import heard
from rollbook.dispatch.stop import Stop


@pytest.fixture
def set_before():
    """Set what a signal does, for the time of a test."""
    before = {}

    def set_to(number, what):
        before[number] = signal.signal(number, what)

    yield set_to
    for number, what in before.items():
        signal.signal(number, what)


async def stop_after(*numbers):
    """Hear signals while this process gets `numbers`; the last one must be heard."""
    stop = Stop()
    with heard(stop, 1.0):
        for number in numbers:
            os.kill(os.getpid(), number)
        await asyncio.wait_for(stop.asked.wait(), 60)
    return stop


@pytest.mark.parametrize("ignored", [signal.SIGHUP, signal.SIGINT, signal.SIGUSR2])
async def test_a_signal_that_the_process_ignores_stops_nothing_and_stays_ignored(set_before, ignored):
    set_before(ignored, signal.SIG_IGN)
    set_before(signal.SIGUSR1, signal.SIG_DFL)
    stop = await stop_after(ignored, signal.SIGUSR1)
    assert (stop.why, stop.at_once.is_set()) == ("SIGUSR1", False)
    assert signal.getsignal(ignored) is signal.SIG_IGN


async def test_a_signal_that_is_not_ignored_stops_a_run(set_before):
    set_before(signal.SIGHUP, signal.SIG_DFL)
    stop = await stop_after(signal.SIGHUP)
    assert (stop.why, stop.exit_code) == ("SIGHUP", 128 + signal.SIGHUP)


async def test_the_answer_to_a_signal_names_the_flag_that_sets_the_grace(capsys):
    await stop_after(signal.SIGUSR1)
    assert "(--grace)" in capsys.readouterr().err

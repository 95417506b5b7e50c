"""The rules of the ceilings, one step at a time."""

import pytest

from rollbook.dispatch.ceilings import Ceilings, Verdict
from rollbook.records.event import ConcurrencyChanged


def fill(ceilings, server="a", now=0.0):
    """Send as much as there is room for; return how much that was."""
    sent = 0
    while ceilings.has_room(server, now):
        ceilings.began(server)
        sent += 1
    return sent


def end(ceilings, count, now, *, server="a", seconds=1.0, verdict=Verdict.OK, retry_after=None):
    for _ in range(count):
        ceilings.ended(server, seconds, verdict, now, retry_after)


def in_use(ceilings, rounds):
    """Run `rounds` rounds in which every place turns over each second, as on a server without a limit."""
    for now in range(1, rounds + 1):
        fill(ceilings, now=now)
        ceilings.tick(float(now))
        fill(ceilings, now=now)
        end(ceilings, ceilings.in_flight, now + 0.5)


def test_a_number_is_the_limit_whatever_happens():
    ceilings = Ceilings(5, auto=False)
    assert fill(ceilings) == 5
    end(ceilings, 5, 1.0, verdict=Verdict.REFUSED)
    ceilings.tick(1.0, lag=9.0)
    assert fill(ceilings, now=1.0) == 5
    assert (ceilings.limit, ceilings.limit_of("a"), ceilings.history) == (5, 5, ())


def test_a_number_holds_for_all_servers_together():
    ceilings = Ceilings(5, auto=False)
    assert [fill(ceilings, "a"), fill(ceilings, "b")] == [5, 0]
    end(ceilings, 2, 1.0)
    assert fill(ceilings, "b", 1.0) == 2


def test_no_number_is_no_limit():
    ceilings = Ceilings(None, auto=False)
    for _ in range(10_000):
        ceilings.began("a")
    assert ceilings.has_room("a", 0.0)
    assert ceilings.limit is ceilings.limit_of("a") is None


@pytest.mark.parametrize(("hard", "start"), [(None, 16), (64, 16), (7, 7)])
def test_auto_starts_with_sixteen_or_the_number_if_that_is_lower(hard, start):
    ceilings = Ceilings(hard, auto=True)
    assert ceilings.limit == start
    assert fill(ceilings) == start


def test_a_number_is_never_exceeded_by_auto():
    ceilings = Ceilings(50, auto=True)
    in_use(ceilings, 20)
    assert fill(ceilings, now=21.0) == ceilings.limit == 50


def test_a_number_is_never_exceeded_by_two_servers_that_grow():
    ceilings = Ceilings(20, auto=True)
    assert [fill(ceilings, "a"), fill(ceilings, "b")] == [16, 4]
    assert ceilings.limit == 20


def test_a_ceiling_that_is_not_used_does_not_grow():
    ceilings = Ceilings(None, auto=True)
    for now in range(1, 60):
        for _ in range(8):
            ceilings.began("a")
        ceilings.tick(float(now))
        end(ceilings, 8, now + 0.5)
    assert ceilings.limit == 16


def test_without_an_ending_a_ceiling_doubles_every_five_seconds_up_to_256_and_then_grows_by_64_in_thirty():
    ceilings = Ceilings(None, auto=True)
    for now in range(100):
        fill(ceilings, now=now)
        ceilings.tick(float(now))
    grown = [(change.at, change.limit) for change in ceilings.history]
    assert grown == [(0, 16), (5, 32), (11, 64), (17, 128), (23, 256), (54, 320), (85, 384)]


def test_a_server_that_cannot_be_reached_gets_no_more_on_time_alone():
    ceilings = Ceilings(None, auto=True)
    for now in range(60):
        fill(ceilings, now=now)
        end(ceilings, 1, now + 0.5, verdict=Verdict.UNREACHABLE)
        fill(ceilings, now=now)
        ceilings.tick(now + 0.9)
    assert ceilings.limit == 16


def test_a_server_that_fails_everything_gets_no_more():
    ceilings = Ceilings(None, auto=True)
    for now in range(1, 60):
        fill(ceilings, now=now)
        end(ceilings, 8, now + 0.5, verdict=Verdict.FAILED)
        fill(ceilings, now=now)
        ceilings.tick(now + 0.9)
    assert ceilings.limit <= 32


def test_a_burst_of_refusals_halves_once():
    ceilings = Ceilings(None, auto=True)
    fill(ceilings)
    end(ceilings, 12, 1.0, verdict=Verdict.REFUSED)
    assert ceilings.limit == 8


def test_a_refusal_of_what_was_sent_after_a_halving_halves_again():
    ceilings = Ceilings(None, auto=True)
    fill(ceilings)
    end(ceilings, 12, 1.0, verdict=Verdict.REFUSED)
    fill(ceilings, now=1.0)
    end(ceilings, 1, 1.1, seconds=0.05, verdict=Verdict.REFUSED)
    assert ceilings.limit == 4


def test_a_refusal_on_one_server_leaves_another_alone():
    ceilings = Ceilings(None, auto=True)
    fill(ceilings, "a")
    end(ceilings, 16, 1.0, server="a", verdict=Verdict.REFUSED, retry_after=60.0)
    assert (ceilings.limit_of("a"), ceilings.limit_of("b")) == (8, 16)
    assert [fill(ceilings, "a", 1.0), fill(ceilings, "b", 1.0)] == [0, 16]


@pytest.mark.parametrize("auto", [True, False])
def test_nothing_is_sent_before_the_time_that_a_server_named(auto):
    ceilings = Ceilings(16, auto=auto)
    fill(ceilings)
    end(ceilings, 1, 1.0, verdict=Verdict.REFUSED, retry_after=7.0)
    end(ceilings, 15, 1.5, verdict=Verdict.REFUSED, retry_after=2.0)
    assert ceilings.room_at(1.5) == 8.0
    assert not ceilings.has_room("a", 7.999)
    assert ceilings.has_room("a", 8.0)
    assert ceilings.room_at(8.0) is None


def test_the_first_server_that_takes_requests_again_is_the_one_to_wait_for():
    ceilings = Ceilings(16, auto=False)
    for server, seconds in (("a", 9.0), ("b", 3.0)):
        ceilings.began(server)
        ceilings.ended(server, 0.1, Verdict.REFUSED, 1.0, seconds)
    assert ceilings.room_at(1.0) == 4.0
    assert ceilings.room_at(4.0) == 10.0
    assert ceilings.held(1.0) == (("a", 10.0, 0), ("b", 4.0, 0))
    assert ceilings.held(4.0) == (("a", 10.0, 0),)


@pytest.mark.parametrize("seconds", [0.0, -5.0])
def test_a_time_that_is_over_holds_nothing_off(seconds):
    ceilings = Ceilings(16, auto=False)
    ceilings.began("a")
    ceilings.ended("a", 0.1, Verdict.REFUSED, 1.0, seconds)
    assert ceilings.has_room("a", 1.0)


def test_a_server_is_asked_again_after_an_hour_whatever_it_said():
    ceilings = Ceilings(16, auto=False)
    ceilings.began("a")
    ceilings.ended("a", 0.1, Verdict.REFUSED, 1.0, 1e9)
    assert ceilings.room_at(1.0) == 3601.0


def test_a_server_that_refuses_at_its_lowest_is_left_alone_for_longer_each_time_until_something_ends_well():
    ceilings = Ceilings(None, auto=True)
    pauses, now = [], 0.0
    for _ in range(14):
        ceilings.began("a")
        now += 1.0
        end(ceilings, 1, now, seconds=0.1, verdict=Verdict.REFUSED)
        now_free = ceilings.room_at(now) or now
        pauses.append(now_free - now)
        now = now_free
    assert pauses == [0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, *[30.0] * 7]
    for verdict, pause in ((Verdict.OK, None), (Verdict.REFUSED, None), (Verdict.REFUSED, 0.5)):
        ceilings.began("a")
        now += 1.0
        end(ceilings, 1, now, seconds=0.1, verdict=verdict)
        assert ceilings.room_at(now) == (None if pause is None else now + pause)


def test_no_refusal_takes_a_ceiling_below_the_size_of_a_group():
    ceilings = Ceilings(None, auto=True, floor=12)
    for now in range(1, 5):
        fill(ceilings, now=now)
        end(ceilings, ceilings.in_flight, now + 0.5, seconds=0.1, verdict=Verdict.REFUSED)
    assert ceilings.limit == 12


def test_a_number_below_the_size_of_a_group_stands():
    ceilings = Ceilings(4, auto=True, floor=12)
    assert fill(ceilings) == ceilings.limit == 4


@pytest.mark.parametrize(("lag", "limit"), [(0.04, 256), (0.06, 16), (0.21, 2)])
def test_a_late_event_loop_stops_growth_and_a_very_late_one_takes_a_quarter_once_in_ten_seconds(lag, limit):
    ceilings = Ceilings(256, auto=True)
    for now in range(1, 60):
        fill(ceilings, now=now)
        ceilings.tick(float(now), lag=lag)
    assert ceilings.limit == limit


def test_what_waits_at_the_model_servers_stops_growth_after_two_samples_and_gives_back_a_quarter_when_it_is_most():
    ceilings = Ceilings(None, auto=True)
    fill(ceilings)
    ceilings.heard((60.0, 100.0), 0.0)
    ceilings.tick(0.0)
    ceilings.tick(5.0)
    assert ceilings.limit == 32
    ceilings.heard((60.0, 100.0), 6.0)
    for now in range(6, 20):
        fill(ceilings, now=now)
        ceilings.tick(float(now))
    assert ceilings.limit == 32
    ceilings.heard((101.0, 100.0), 20.0)
    for now in range(20, 30):
        ceilings.tick(float(now))
    assert ceilings.limit == 24
    assert ceilings.history[-1].why == "101 requests wait at the model servers, 100 run"


def test_a_few_requests_that_wait_are_no_queue():
    ceilings = Ceilings(None, auto=True)
    for now in range(6):
        fill(ceilings, now=now)
        ceilings.heard((7.0, 0.0), float(now))
        ceilings.tick(float(now))
    assert ceilings.limit == 32


def test_model_servers_that_stopped_telling_hold_nothing_back():
    ceilings = Ceilings(None, auto=True)
    fill(ceilings)
    for now in (0.0, 1.0):
        ceilings.heard((60.0, 100.0), now)
        ceilings.tick(now)
    ceilings.tick(90.0)
    assert ceilings.limit == 16
    ceilings.tick(92.0)
    assert ceilings.limit == 32


def test_a_number_can_be_changed_while_rollouts_are_in_flight():
    ceilings = Ceilings(10, auto=False)
    fill(ceilings)
    ceilings.change(4, 1.0, auto=False)
    end(ceilings, 6, 2.0)
    assert not ceilings.has_room("a", 2.0)
    end(ceilings, 1, 3.0)
    assert fill(ceilings, now=3.0) == 1
    ceilings.change(None, 4.0, auto=True)
    assert (ceilings.limit_of("a"), fill(ceilings, now=4.0)) == (16, 12)
    ceilings.change(6, 5.0, auto=True)
    assert (ceilings.limit, ceilings.limit_of("a")) == (6, 6)


def test_each_change_is_told_and_kept():
    told = []
    ceilings = Ceilings(None, auto=True, told=told.append)
    fill(ceilings)
    ceilings.tick(1.0)
    end(ceilings, 1, 2.0, verdict=Verdict.REFUSED)
    ceilings.change(4, 3.0, auto=False)
    assert told == [
        ConcurrencyChanged(16, "start", 1.0, "a"),
        ConcurrencyChanged(8, "refused", 2.0, "a"),
        ConcurrencyChanged(4, "asked for", 3.0),
    ]
    assert list(ceilings.history) == told


def test_of_a_long_history_the_beginning_and_the_end_are_kept():
    ceilings = Ceilings(1, auto=False)
    for hard in range(1, 1001):
        ceilings.change(hard, float(hard), auto=False)
    kept = [change.limit for change in ceilings.history]
    assert kept == [*range(1, 33), *range(777, 1001)]


def test_an_ending_without_a_beginning_is_refused():
    ceilings = Ceilings(4, auto=True)
    ceilings.began("a")
    ceilings.ended("a", 1.0, Verdict.OK, 1.0)
    with pytest.raises(ValueError, match="no attempt is in flight on a"):
        ceilings.ended("a", 1.0, Verdict.OK, 1.0)


def test_a_number_below_one_is_refused():
    with pytest.raises(ValueError, match="0 rollouts at a time"):
        Ceilings(0, auto=False)

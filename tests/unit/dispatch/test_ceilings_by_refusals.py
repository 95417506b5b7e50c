"""What the ceilings make of refusals that do not come of what is in flight, on servers whose capacity is known."""

from itertools import pairwise

import pytest

from rollbook.dispatch.ceiling_cuts import Cuts
from rollbook.dispatch.ceilings import Ceilings, Verdict
from unit.dispatch.ceiling_simulation import Server, Simulation, exponential, jittered, long_tailed


class Sprinkling(Server):
    """Refuses a share of what it is sent, whatever it works on."""

    share = 0.01

    def refuses_now(self, _now, source):
        return source.random() < self.share


class InWaves(Server):
    """Refuses everything for the first five seconds of each minute after the first."""

    def refuses_now(self, now, _source):
        return now >= 60 and now % 60 < 5


class Away(Server):
    """Refuses everything from second 100 to second 120."""

    def refuses_now(self, now, _source):
        return 100 <= now < 120


def simulated(server, seconds):
    simulation = Simulation(Ceilings(None, auto=True), server, seed=1, tick_every=0.25)
    simulation.put_off = 0.5
    simulation.run(seconds)
    return simulation


@pytest.mark.parametrize("share", [0.001, 0.01])
def test_refusals_by_chance_do_not_take_a_ceiling_down(share):
    server = Sprinkling("a", 200, jittered(2.0))
    server.share = share
    simulation = simulated(server, seconds=400)
    assert server.rate(100, 400) >= 0.8 * 200 / 2
    assert len(server.refused) / len(server.sent) <= 1.5 * share
    assert min(limit for at, (limit,) in simulation.limits if at >= 100) >= 100


def test_refusals_by_chance_that_name_a_time_do_not_take_a_ceiling_down():
    server = Sprinkling("a", 200, jittered(2.0), retry_after=1.0)
    simulation = simulated(server, seconds=600)
    assert simulation.mean_limit(since=200) >= 100


@pytest.mark.parametrize("retry_after", [None, 1.0, 5.0])
def test_waves_of_refusals_are_waited_out_each_like_the_first(retry_after):
    server = InWaves("a", 100, jittered(1.0), retry_after=retry_after)
    simulated(server, seconds=900)
    assert server.rate(300, 600) >= 0.75 * 100 * 55 / 60
    assert server.rate(600, 900) >= 0.75 * 100 * 55 / 60
    assert len(server.refused) / len(server.sent) < 0.03


@pytest.mark.parametrize("seconds", [1.0, 20.0])
def test_a_server_that_was_away_for_twenty_seconds_is_used_as_before_a_minute_later(seconds):
    server = Away("a", 100, long_tailed(seconds))
    simulation = simulated(server, seconds=100)
    before = simulation.mean_limit(since=90)
    simulation.run(80)
    assert simulation.mean_limit(since=170) >= 0.75 * before
    assert sum(100 <= at < 120 for at in server.refused) <= 40


def test_pauses_at_the_lowest_ceiling_begin_with_half_a_second_however_often_it_was_halved_before():
    server = Away("a", 100, jittered(1.0))
    simulated(server, seconds=140)
    sent = [at for at in server.sent if at >= 100]
    assert max(later - earlier for earlier, later in pairwise(sent)) <= 16.5


def test_what_goes_on_at_half_of_a_ceiling_does_not_halve_it_again():
    server = Sprinkling("a", 400, jittered(1.0))
    server.share = 0.0
    simulation = simulated(server, seconds=60)
    server.share = 0.05
    simulation.run(60)
    assert simulation.mean_limit(since=80) >= 150


class Bucket(Server):
    """Takes fifty requests at once and fifty more each second; refuses the rest for five seconds."""

    tokens, at = 50.0, 0.0

    def refuses_now(self, now, _source):
        self.tokens, self.at = min(50.0, self.tokens + 50.0 * (now - self.at)), now
        refuses = self.tokens < 1.0
        self.tokens -= not refuses
        return refuses


def test_a_server_that_pauses_for_longer_than_it_works_is_sent_less_than_it_pauses_for():
    server = Bucket("a", 10_000, jittered(2.0), retry_after=5.0)
    simulated(server, seconds=600)
    assert server.rate(100, 600) >= 20


def test_the_first_pause_at_the_lowest_ceiling_is_half_a_second_after_any_number_of_halvings():
    ceilings, now = Ceilings(None, auto=True), 0.0
    while ceilings.limit > 1:
        for _ in range(ceilings.limit):
            ceilings.began("a")
        now += 1.0
        for _ in range(ceilings.in_flight):
            ceilings.ended("a", 0.5, Verdict.REFUSED, now)
    assert ceilings.room_at(now) is None
    ceilings.began("a")
    ceilings.ended("a", 0.5, Verdict.REFUSED, now + 1.0)
    assert ceilings.room_at(now + 1.0) == now + 1.5


@pytest.mark.parametrize(("in_flight", "passes"), [(41, True), (1, False)])
def test_what_a_server_works_on_since_a_halving_speaks_for_it_before_it_ends(in_flight, passes):
    cuts = Cuts()
    cuts.cut(1.0, in_flight=1, at_least=64)
    assert cuts.lets_pass(2.0, 2.005, in_flight, pause=0.0) is passes


@pytest.mark.parametrize("floor", [1, 2, 8, 16])
def test_a_server_that_refuses_everything_is_left_alone_for_up_to_thirty_seconds_however_large_a_group_is(floor):
    server = Server("a", 0, jittered(1.0), refuses=True)
    simulation = Simulation(Ceilings(None, auto=True, floor=floor), server)
    simulation.run(300)
    assert max(later - earlier for earlier, later in pairwise(server.sent)) >= 29
    assert len(server.sent) <= 60 + 20 * floor


@pytest.mark.parametrize(("capacity", "seconds"), [(64, 2.0), (64, 0.5), (200, 0.5)])
def test_refusals_that_are_let_pass_prove_no_capacity(capacity, seconds):
    server = Server("a", capacity, exponential(seconds), refuses=True)
    simulation = simulated(server, seconds=900)
    assert max(limit for at, (limit,) in simulation.limits if at >= 300) < 1.25 * capacity
    assert sum(at >= 300 for at in server.refused) / sum(at >= 300 for at in server.sent) < 0.01
    assert server.rate(300, 900) >= 0.85 * capacity / seconds


@pytest.mark.parametrize("share", [0.001, 0.01, 0.05, 0.1])
def test_a_server_that_refuses_by_chance_and_gains_capacity_is_sent_more_soon(share):
    server = Sprinkling("a", 100, jittered(2.0))
    server.share, server.refuses = share, True
    simulation = simulated(server, seconds=200)
    server.capacity = 200
    simulation.run(300)
    assert server.rate(400, 500) >= 0.75 * 200 / 2
    assert simulation.mean_limit(since=400) <= 1.5 * 200


@pytest.mark.parametrize("verdict", [Verdict.FAILED, Verdict.UNREACHABLE, None])
def test_what_never_arrived_or_was_cut_no_longer_hides_what_a_server_works_on_since_a_halving(verdict):
    ceilings = Ceilings(None, auto=True, start=512)
    for _ in range(400):
        ceilings.began("a")
    while ceilings.limit == 512:
        ceilings.ended("a", 0.5, Verdict.REFUSED, 1.0)
    for _ in range(ceilings.in_flight):
        if verdict is None:
            ceilings.withdrawn("a", began=0.1)
        else:
            ceilings.ended("a", 1.4, verdict, 1.5)
    for _ in range(150):
        ceilings.began("a")
    halved = ceilings.limit
    ceilings.ended("a", 0.5, Verdict.REFUSED, 3.0)
    assert ceilings.limit == halved

"""What the ceilings find on servers whose capacity is known."""

from itertools import pairwise

import pytest

from rollbook.dispatch.ceilings import Ceilings
from unit.dispatch.ceiling_simulation import Server, Simulation, constant, exponential, jittered, long_tailed


def simulated(*servers, seconds, hard=None, floor=1, seed=0):
    simulation = Simulation(Ceilings(hard, auto=True, floor=floor), *servers, seed=seed)
    simulation.run(seconds)
    return simulation


@pytest.mark.parametrize("spread", [constant, jittered, exponential, long_tailed])
@pytest.mark.parametrize(("capacity", "by"), [(8, 5), (50, 10), (200, 20)])
def test_a_server_that_queues_is_used_by_four_fifths_soon_and_stays_so(spread, capacity, by):
    server = Server("a", capacity, spread(1.0))
    simulated(server, seconds=120)
    assert server.rate(by, by + 10) >= 0.8 * capacity
    assert server.rate(60, 120) >= 0.8 * capacity


@pytest.mark.parametrize("spread", [jittered, exponential, long_tailed])
@pytest.mark.parametrize("capacity", [50, 200])
def test_a_server_that_queues_is_not_sent_twice_what_it_can_do_for_long(spread, capacity):
    simulation = simulated(Server("a", capacity, spread(1.0)), seconds=120)
    over = [limit > 2 * capacity for _, (limit,) in simulation.limits]
    assert sum(over) <= 15
    assert simulation.mean_limit(since=60) <= 1.7 * capacity


def test_rollouts_of_twenty_seconds_overshoot_on_time_and_are_brought_back():
    server = Server("a", 32, jittered(20.0))
    simulation = simulated(server, seconds=1800)
    assert server.rate(20, 120) >= 0.8 * 32 / 20
    assert server.rate(900, 1800) >= 0.8 * 32 / 20
    assert simulation.mean_limit(since=900) <= 2 * 32


def test_rollouts_of_ten_minutes_are_not_waited_for():
    simulation = simulated(Server("a", 1000, long_tailed(600.0)), seconds=30)
    assert simulation.most_in_flight == 256
    simulation.run(900)
    assert simulation.servers[0].rate(600, 930) >= 0.25 * 1000 / 600
    assert simulation.most_in_flight <= 1000


@pytest.mark.parametrize("capacity", [5, 30, 100])
@pytest.mark.parametrize("retry_after", [None, 2.0])
def test_a_server_that_refuses_is_used_and_seldom_asked_for_more(capacity, retry_after):
    server = Server("a", capacity, jittered(1.0), refuses=True, retry_after=retry_after)
    simulated(server, seconds=300)
    assert len(server.refused) / len(server.sent) < 0.05
    assert server.rate(100, 300) >= 0.8 * capacity


def test_a_server_that_refuses_long_rollouts_is_used_and_seldom_asked_for_more():
    server = Server("a", 100, jittered(60.0), refuses=True)
    simulated(server, seconds=1800)
    assert len(server.refused) / len(server.sent) < 0.05
    assert server.rate(300, 1800) >= 0.8 * 100 / 60


def test_nothing_reaches_a_server_before_the_time_it_named():
    server = Server("a", 20, jittered(1.0), refuses=True, retry_after=3.0)
    simulated(server, seconds=200)
    for refused in server.refused:
        assert not any(refused < sent < refused + 3.0 for sent in server.sent)
    assert min(sent for sent in server.sent if sent > server.refused[0]) == server.refused[0] + 3.0


def test_two_servers_find_ceilings_of_their_own():
    small = Server("small", 10, jittered(1.0), refuses=True, retry_after=1.0)
    large = Server("large", 150, jittered(1.0))
    simulated(small, large, seconds=200)
    assert small.rate(100, 200) >= 0.8 * 10
    assert large.rate(100, 200) >= 0.8 * 150
    assert len(small.refused) / len(small.sent) < 0.05


def test_a_server_that_loses_half_its_capacity_is_sent_less():
    server = Server("a", 120, jittered(1.0))
    simulation = simulated(server, seconds=100)
    server.capacity = 60
    simulation.run(200)
    assert server.rate(250, 300) >= 0.8 * 60
    assert simulation.mean_limit(since=250) <= 2 * 60


def test_a_server_that_gains_capacity_is_sent_more():
    server = Server("a", 50, jittered(1.0))
    simulation = simulated(server, seconds=60)
    server.capacity = 150
    simulation.run(240)
    assert server.rate(250, 300) >= 0.8 * 150


def test_an_outage_costs_few_requests_and_is_over_soon_after_it_is_over():
    server = Server("a", 100, jittered(1.0), refuses=True)
    simulation = simulated(server, seconds=60)
    before = len(server.refused)
    server.capacity = 0
    simulation.run(120)
    assert len(server.refused) - before <= 30
    server.capacity = 100
    simulation.run(60)
    assert server.rate(230, 240) >= 0.75 * 100


def test_the_model_servers_queue_keeps_long_rollouts_from_piling_up():
    server = Server("a", 100, jittered(20.0))
    simulation = Simulation(Ceilings(None, auto=True), server)
    simulation.tells_queues = True
    simulation.run(300)
    assert simulation.mean_limit(since=60) <= 2 * 100
    assert server.rate(60, 300) >= 0.8 * 100 / 20


def test_a_late_event_loop_is_given_less_and_more_again():
    server = Server("a", 1000, jittered(1.0))
    simulation = simulated(server, seconds=10)
    limit = simulation.ceilings.limit
    simulation.lag = 0.1
    simulation.run(20)
    assert simulation.ceilings.limit == limit
    simulation.lag = 0.3
    simulation.run(20)
    less = simulation.ceilings.limit
    assert less <= limit * 0.6
    simulation.lag = 0.0
    simulation.run(60)
    assert simulation.ceilings.limit > less


@pytest.mark.parametrize("refuses", [False, True])
def test_a_hard_ceiling_is_never_exceeded(refuses):
    simulation = simulated(
        Server("a", 30, jittered(1.0), refuses=refuses), Server("b", 300, jittered(1.0)), seconds=60, hard=40
    )
    assert simulation.most_in_flight == 40


def test_a_group_always_fits():
    simulation = simulated(Server("a", 3, jittered(1.0), refuses=True), seconds=30, floor=8)
    assert min(limit for _, (limit,) in simulation.limits) == 8


def test_the_history_tells_each_move_in_order():
    simulation = simulated(Server("a", 50, jittered(1.0)), seconds=60)
    history = simulation.ceilings.history
    assert history[0].why == "start"
    assert all(earlier.at <= later.at for earlier, later in pairwise(history))
    assert all(earlier.limit != later.limit for earlier, later in pairwise(history))
    assert history[-1].limit == simulation.ceilings.limit_of("a")

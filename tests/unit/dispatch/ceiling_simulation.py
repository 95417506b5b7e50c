"""Servers of known capacity and a run that always has work for them, in virtual time: no loop, no clock, no waiting."""

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from rollbook.dispatch.ceilings import Ceilings, Verdict

REFUSING = 0.005
"""Seconds that a server takes to turn a request away."""


@dataclass
class Server:
    """Works on `capacity` requests at a time; others wait in its queue or, where it `refuses`, are turned away."""

    name: str
    capacity: int
    seconds: Callable[[random.Random], float]
    refuses: bool = False
    retry_after: float | None = None
    working: int = 0
    queue: deque[float] = field(default_factory=deque)
    done: list[float] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    out: int = 0
    put_off: int = 0

    def refuses_now(self, _now: float, _source: random.Random) -> bool:
        """Whether it turns away what it is sent, whatever it works on."""
        return False

    def rate(self, since: float, until: float) -> float:
        return sum(since <= at < until for at in self.done) / (until - since)


class Simulation:
    """Keeps every server as busy as its ceiling allows, and ticks every `tick_every` seconds."""

    def __init__(self, ceilings: Ceilings, *servers: Server, seed: int = 0, tick_every: float = 1.0) -> None:
        self.ceilings = ceilings
        self.servers = servers
        self.now = 0.0
        self.limits: list[tuple[float, tuple[int, ...]]] = []
        self.most_in_flight = 0
        self.lag = 0.0
        self.tells_queues = False
        self.put_off = 0.0
        """Seconds that what was refused waits, at least, before it takes its place again."""
        self._random = random.Random(seed)  # noqa: S311  a simulation repeats itself
        self._order = itertools.count()
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._tick_every = self._next_tick = tick_every

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        self._fill(self.servers)
        while self.now < until:
            self._step(until)

    def mean_limit(self, since: float, of: int = 0) -> float:
        limits = [limits[of] for at, limits in self.limits if at >= since]
        return sum(limits) / len(limits)

    def _step(self, until: float) -> None:
        room_at = self.ceilings.room_at(self.now)
        event_at = self._events[0][0] if self._events else until
        self.now = min(until, event_at, self._next_tick, room_at if room_at is not None else until)
        while self._events and self._events[0][0] <= self.now:
            heapq.heappop(self._events)[2]()
        if self.now >= self._next_tick:
            self._tick()
        if room_at is not None and self.now >= room_at:
            self._fill(self.servers)

    def _tick(self) -> None:
        self._next_tick += self._tick_every
        if self.tells_queues and self.now % 5 == 0:
            waiting, running = (sum(n) for n in zip(*((len(s.queue), s.working) for s in self.servers), strict=True))
            self.ceilings.heard((float(waiting), float(running)), self.now)
        self.ceilings.tick(self.now, self.lag)
        self._fill(self.servers)
        self.limits.append((self.now, tuple(self.ceilings.limit_of(server.name) for server in self.servers)))

    def _fill(self, servers: Iterable[Server]) -> None:
        for server in servers:
            while self.ceilings.has_room(server.name, self.now) and not self._waits(server):
                self._send(server)

    def _waits(self, server: Server) -> bool:
        """Whether every place that is left is kept for what was refused."""
        return server.put_off > 0 and server.out + server.put_off >= self.ceilings.limit_of(server.name)

    def _send(self, server: Server) -> None:
        self.ceilings.began(server.name)
        self.most_in_flight = max(self.most_in_flight, self.ceilings.in_flight)
        server.sent.append(self.now)
        server.out += 1
        began = self.now
        if server.refuses_now(self.now, self._random):
            self._at(REFUSING, lambda: self._refuse(server, began))
        elif server.working < server.capacity:
            self._work(server, began)
        elif server.refuses:
            self._at(REFUSING, lambda: self._refuse(server, began))
        else:
            server.queue.append(began)

    def _work(self, server: Server, began: float) -> None:
        server.working += 1
        self._at(server.seconds(self._random), lambda: self._done(server, began))

    def _done(self, server: Server, began: float) -> None:
        server.working -= 1
        server.done.append(self.now)
        while server.queue and server.working < server.capacity:
            self._work(server, server.queue.popleft())
        server.out -= 1
        self.ceilings.ended(server.name, self.now - began, Verdict.OK, self.now)
        self._fill((server,))

    def _refuse(self, server: Server, began: float) -> None:
        server.refused.append(self.now)
        server.out -= 1
        if self.put_off:
            server.put_off += 1
            self._at(self.put_off * self._random.uniform(1.0, 1.5), lambda: self._back(server))
        self.ceilings.ended(server.name, self.now - began, Verdict.REFUSED, self.now, server.retry_after)
        self._fill((server,))

    def _back(self, server: Server) -> None:
        server.put_off -= 1
        self._fill((server,))

    def _at(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self.now + seconds, next(self._order), what))


def constant(seconds: float) -> Callable[[random.Random], float]:
    return lambda _random: seconds


def jittered(seconds: float) -> Callable[[random.Random], float]:
    return lambda source: seconds * source.uniform(0.7, 1.3)


def exponential(seconds: float) -> Callable[[random.Random], float]:
    return lambda source: source.expovariate(1 / seconds)


def long_tailed(seconds: float) -> Callable[[random.Random], float]:
    """Log-normal: the mean is `seconds`, half take less than 0.6 of it."""
    return lambda source: seconds * source.lognormvariate(-0.5, 1.0)

"""Time that only a server moves: a run whose rollouts take as long as the server says, to the second.

Rules:
* The time stands while a lane has anything to do: it moves when as many rollouts as there are lanes are in flight, to
  the end of the one that ends first. What is read from the clock meanwhile is exact.
* Where fewer come than there are lanes, since nothing more is sent, those that are there are answered all the same.
"""

import asyncio
import heapq
from collections.abc import Callable

from omegaconf import OmegaConf

from cases import peer as peers
from cases.peer import Asked
from cases.played import Played, Said
from rollbook.api.evaluation import evaluate
from rollbook.api.request import EvaluationRequest, EvaluationResult, ServeMode
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.records.event import AttemptStarted, Event, Observe, both, observe_nothing

_NOTHING_COMES_S = 0.2


class SteppedClock:
    """The time of a run and of its server: `at` seconds. Sleeps are real, and none is waited for."""

    def __init__(self) -> None:
        self.at = 1000.0

    def monotonic(self) -> float:
        """Seconds that only ever grow."""
        return self.at

    def now(self) -> float:
        """Seconds since the epoch, as if."""
        return self.at

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)


class Stepping:
    """A script that answers each rollout `takes(key)` seconds after it was asked for, by the clock that it moves."""

    def __init__(self, clock: SteppedClock, lanes: int, takes: Callable[[Asked], float]) -> None:
        self.clock, self.lanes, self.takes = clock, lanes, takes
        self._flying: list[tuple[float, int, asyncio.Event]] = []
        self._count = 0
        self._nothing_comes: asyncio.TimerHandle | None = None

    async def __call__(self, asked: Asked) -> None:
        """Return when the rollout's time has come."""
        self._count += 1
        over = asyncio.Event()
        heapq.heappush(self._flying, (self.clock.at + self.takes(asked), self._count, over))
        self._look()
        await over.wait()

    def _look(self) -> None:
        if self._nothing_comes is not None:
            self._nothing_comes.cancel()
        if len(self._flying) >= self.lanes:
            self._step()
        elif self._flying:
            self._nothing_comes = asyncio.get_running_loop().call_later(_NOTHING_COMES_S, self._step)

    def _step(self) -> None:
        ends, _, over = heapq.heappop(self._flying)
        self.clock.at = max(self.clock.at, ends)
        over.set()
        self._look()


class SteppedRun:
    """A run on `lanes` lanes, whose rollouts take as many seconds as `takes` says of their task."""

    def __init__(self, played: Played, lanes: int, takes: Callable[[int], float]) -> None:
        self.played = played
        self.clock = SteppedClock()
        self.begun = self.clock.at
        self.lanes = lanes
        played.stub.script = Stepping(self.clock, lanes, lambda asked: takes(asked.task))
        self.events: list[Event] = []

    def run(self, observe: Observe = observe_nothing, **settings: object) -> EvaluationResult:
        """Run it in this process, by its own clock."""
        given = {
            "input_jsonl_fpath": str(self.played.input),
            "output_jsonl_fpath": str(self.played.output),
            "num_samples_in_parallel": self.lanes,
            "route_failures_to_sidecar": True,
            "retry_for_s": 0,
            "durability": "off",
        }
        head = {"host": "127.0.0.1", "port": self.played.stub.port}
        request = EvaluationRequest(
            RolloutCollectionConfig.model_validate(given | settings),
            OmegaConf.create({"head_server": head}),
            ServeMode.NONE,
            both(self.events.append, observe),
        )
        return asyncio.run(evaluate(request, self.clock))

    @property
    def started(self) -> list[float]:
        """Seconds from the beginning to each start, in order."""
        return [event.at - self.begun for event in self.events if isinstance(event, AttemptStarted)]

    def resumed(self) -> Said:
        """Resume without a budget, as fast as it goes."""
        self.played.stub.script = peers.at_once
        return self.played.resume("--concurrency", "8")

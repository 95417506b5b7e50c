"""A run that only notes what it is told."""

from rollbook.dispatch.controls import ControlStatus, Requeued
from rollbook.records.event import Waiting
from rollbook.records.identity import RolloutKey

IN_FLIGHT = RolloutKey(3, 0)


def waiting(task, seconds=12.5):
    return Waiting(RolloutKey(task, 0), seconds, "env", "127.0.0.1:8000", "waiting for the reply")


LONGEST = waiting(3)


class ScriptedControls:
    """Holds one rollout in flight, 3-0, in its second attempt; `told` are the calls that changed something."""

    def __init__(self, waiting=(LONGEST,)):
        self.told = []
        self._status = {"in_flight": 1, "limit": 64, "planned": 10, "ended": 4, "waiting": tuple(waiting)}

    def status(self):
        return ControlStatus(**self._status)

    def set_limit(self, limit):
        self._tell("limit", limit)
        self._status["limit"] = limit

    def pause(self):
        self._tell("pause")
        self._status["paused"] = True

    def resume(self):
        self._tell("resume")
        self._status["paused"] = False

    def drain(self, why):
        self._tell("drain", why)
        self._status |= {"draining": True, "stop_reason": why}

    def requeue(self, keys):
        self._tell("requeue", *keys)
        return tuple(Requeued(key, 2) if key == IN_FLIGHT else Requeued(key, why="not in flight") for key in keys)

    def _tell(self, *what):
        self.told.append(what)

"""The witness: a scripted head, environment server and aggregation in a process of its own.

Rules:
* One port per slot; a slot plays one round at a time, and a row names its round.
* Every request and every completed reply is one line of the round's log, written at once, before anything else happens.
* A slot may be armed: at a stated event it sends a signal to a process that its owner has not reaped yet.
* It ends when its standard input does.

Run: python -m crash.server <slots>; it prints its ports as a JSON list.
"""

import asyncio
import json
import os
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml
from aiohttp import ClientConnectionResetError, web

from crash.script import Fault, answer_of, delay_of, fault_of, refusal_of

AGENT: Final = "adder"
ENVIRONMENT: Final = "adder_environment_server"
QUIET: Final = 0.005


@dataclass
class Blow:
    """A signal for `pid` at the `count`th `event`, `delay` seconds later; then, perhaps, a SIGKILL."""

    pid: int
    event: str
    count: int
    delay: float
    signal: int
    then_kill_after: float | None


@dataclass
class Round:
    """What one round of a slot is played by, and where it is written down."""

    name: str
    seed: int
    faults: bool
    log: int

    def note(self, event: str, **said: object) -> None:
        if self.log >= 0:
            os.write(self.log, json.dumps({"e": event} | said).encode() + b"\n")


@dataclass
class Slot:
    """One port."""

    port: int = 0
    rounds: dict[str, Round] = field(default_factory=dict)
    current: Round | None = None
    blow: Blow | None = None
    timers: list[asyncio.TimerHandle] = field(default_factory=list)
    in_flight: int = 0

    def happened(self, event: str) -> None:
        if self.blow is None or self.blow.event != event:
            return
        self.blow.count -= 1
        if self.blow.count <= 0:
            blow, self.blow = self.blow, None
            self._strike(blow)

    def _strike(self, blow: Blow) -> None:
        later = asyncio.get_running_loop().call_later
        self.timers.append(later(blow.delay, self._kill, blow.pid, blow.signal))
        if blow.then_kill_after is not None:
            self.timers.append(later(blow.delay + blow.then_kill_after, self._kill, blow.pid, signal.SIGKILL))

    def _kill(self, pid: int, number: int) -> None:
        if self.current is not None:
            self.current.note("signal", signal=number)
        os.kill(pid, number)

    def disarm(self) -> None:
        self.blow = None
        for timer in self.timers:
            timer.cancel()
        self.timers.clear()

    async def play(self, request: web.Request) -> web.Response:
        """Begin a round."""
        said = await request.json()
        log = os.open(Path(said["log"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        self.current = self.rounds[said["name"]] = Round(said["name"], said["seed"], said["faults"], log)
        return web.json_response({})

    async def arm(self, request: web.Request) -> web.Response:
        """Set the signal that waits for an event; with an empty body take it away, and wait until nothing is asked."""
        said = await request.json()
        self.disarm()
        if said:
            self.blow = Blow(**said)
            self.happened("armed")
            return web.json_response({})
        await asyncio.sleep(QUIET)
        while self.in_flight:  # noqa: ASYNC110  it is asked once a death
            await asyncio.sleep(QUIET)
        return web.json_response({})

    async def end(self, request: web.Request) -> web.Response:
        """End a round; its log is closed."""
        played = self.rounds.pop((await request.json())["name"])
        os.close(played.log)
        played.log = -1  # what still answers a dead process writes nowhere
        return web.json_response({})

    async def head(self, _request: web.Request) -> web.Response:
        self.happened("head")
        here = {"entrypoint": "app.py", "host": "127.0.0.1", "port": self.port}
        agent = {"type": "responses_api_agents", "name": AGENT}
        config = {
            "head_server": {"host": "127.0.0.1", "port": self.port},
            AGENT: {"responses_api_agents": {"simple_agent": here}},
            ENVIRONMENT: {"environment_servers": {"legacy_agent": here | {"agent_server": agent}}},
        }
        return web.json_response(yaml.safe_dump(config))

    async def run(self, request: web.Request) -> web.StreamResponse:
        self.in_flight += 1
        try:
            return await self._answered(request, await request.json())
        finally:
            self.in_flight -= 1

    async def _answered(self, request: web.Request, row: dict) -> web.StreamResponse:
        played = self.rounds.get(row["round"])
        if played is None:
            return _hung_up(request)
        who = (row["_ng_task_index"], row["_ng_rollout_index"], row.get("_ng_attempt_index") or 0)
        fault = fault_of(played.seed, *who) if played.faults else Fault.NONE
        played.note("request", who=who, fault=fault.value)
        self.happened("request")
        if fault is not Fault.UNREAD:
            await asyncio.sleep(delay_of(played.seed, *who))
        if fault is Fault.NONE:
            played.note("scored", who=who)
        try:
            reply = await _replied(request, row, fault)
        except ClientConnectionResetError:
            return web.Response()  # nobody is there any more
        played.note("replied", who=who, scored=fault is Fault.NONE)
        self.happened("reply")
        return reply

    async def aggregate(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.happened("aggregate")
        rewards = [row["reward"] for row in body["verify_responses"] if "reward" in row]
        metrics = {"mean/reward": sum(rewards) / len(rewards) if rewards else 0.0}
        empty = {"group_level_metrics": [], "repeat_level_metrics": []}
        reply = await _sent(request, 200, json.dumps(empty | {"agent_metrics": metrics, "key_metrics": metrics}))
        self.happened("aggregated")
        return reply


async def _replied(request: web.Request, row: dict, fault: Fault) -> web.StreamResponse:
    match fault:
        case Fault.UNAVAILABLE | Fault.TOO_MANY | Fault.ERROR:
            return await _sent(request, int(fault.value), json.dumps({"detail": "planned"}))
        case Fault.UNREAD | Fault.DROPPED:
            return _hung_up(request)
        case Fault.HALF:
            answer = json.dumps(answer_of(row)).encode()
            reply = web.StreamResponse(headers={"Content-Length": str(len(answer))})
            await reply.prepare(request)
            await reply.write(answer[: len(answer) // 2])
            return _hung_up(request)
        case Fault.NO_JSON:
            return await _sent(request, 200, '{"reward": 1.')
        case Fault.REFUSED:
            return await _sent(request, 200, json.dumps(refusal_of(row)))
        case Fault.NONE:
            return await _sent(request, 200, json.dumps(answer_of(row)))


async def _sent(request: web.Request, status: int, text: str) -> web.StreamResponse:
    """Send a whole reply; once this returns it has been handed to the operating system."""
    body = text.encode()
    headers = {"Content-Type": "application/json", "Content-Length": str(len(body)), "Retry-After": "0"}
    reply = web.StreamResponse(status=status, headers=headers)
    await reply.prepare(request)
    await reply.write(body)
    await reply.write_eof()
    return reply


def _hung_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


async def _opened(slot: Slot) -> web.AppRunner:
    app = web.Application(client_max_size=1 << 30)
    app.router.add_get("/global_config_dict_yaml", slot.head)
    app.router.add_post("/run", slot.run)
    app.router.add_post("/aggregate_metrics", slot.aggregate)
    app.router.add_post("/control/play", slot.play)
    app.router.add_post("/control/arm", slot.arm)
    app.router.add_post("/control/end", slot.end)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    slot.port = runner.addresses[0][1]
    return runner


async def serve(slots: int) -> None:
    """Serve until standard input ends."""
    served = [Slot() for _ in range(slots)]
    runners = [await _opened(slot) for slot in served]
    sys.stdout.write(json.dumps([slot.port for slot in served]) + "\n")
    sys.stdout.flush()
    await asyncio.to_thread(sys.stdin.buffer.read)
    for runner in runners:
        await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))

"""One `gym eval ctl`, from the run and the command it names to the printed answer.

Rules:
* A command that cannot be meant is a mistake in the command line, and nothing is asked.

Source: collection.md §3.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any, Final

import click
import msgspec

from rollbook.cli.run_outputs import run_named
from rollbook.cli.terminal import say, say_error, say_json
from rollbook.dispatch.controls import ControlStatus, Requeued
from rollbook.ledger.ownership import resolve_rollout_path
from rollbook.ledger.paths import RunPaths
from rollbook.records.event import Waiting
from rollbook.records.identity import RolloutKey
from rollbook.report.shapes import VERSION
from rollbook.verbs.control_request import MOST_IN_FLIGHT, MOST_ROLLOUTS, Answer, Request

Ask = Callable[[RunPaths, Request], Answer]
_KEY: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,18})", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_FAILED: Final = 1
_AUTO: Final = "auto"


def order_of(command: str, words: tuple[str, ...]) -> Request:
    """Return what the words of the command line ask for.

    Raises:
        click.UsageError: words that the command does not take, or too few of them.

    """
    match command:
        case "concurrency":
            return Request(command, auto=True) if words == (_AUTO,) else Request(command, limit=_limit(words))
        case "requeue":
            return Request(command, rollouts=_rollouts(words))
        case _ if words:
            raise click.UsageError(f"{command} takes nothing further, and {words[0]!r} was given.")
        case _:
            return Request(command)


def tell(word: str, request: Request, ask: Ask, *, as_json: bool) -> int:
    """Ask the run that `word` names, print what it answers, and return the exit code that says it in short."""
    paths = RunPaths(resolve_rollout_path(run_named(word), read_only=True))
    answer = ask(paths, request)
    if as_json:
        say_json(_plain(answer))
    elif answer.error is None:
        say("\n".join(_text(answer)))
    if answer.error is not None:
        say_error(f"{paths.output}: {answer.error}")
    left = any(one.attempt is None for one in answer.requeued)
    return _FAILED if left or answer.error is not None else 0


def _limit(words: tuple[str, ...]) -> int:
    if len(words) != 1 or not _NUMBER.fullmatch(words[0]) or not 1 <= int(words[0]) <= MOST_IN_FLIGHT:
        raise click.UsageError(f"concurrency takes `{_AUTO}` or one number from 1 to {MOST_IN_FLIGHT}.")
    return int(words[0])


def _rollouts(words: tuple[str, ...]) -> tuple[RolloutKey, ...]:
    if not 0 < len(words) <= MOST_ROLLOUTS:
        raise click.UsageError(f"requeue takes 1 to {MOST_ROLLOUTS} rollouts as TASK-ROLLOUT, for example 3-0.")
    return tuple(map(_key, words))


def _key(word: str) -> RolloutKey:
    match = _KEY.fullmatch(word)
    if match is None:
        raise click.UsageError(f"{word}: give a rollout as TASK-ROLLOUT, for example 3-0.")
    return RolloutKey(int(match[1]), int(match[2]))


def _plain(answer: Answer) -> dict[str, object]:
    """Return `answer` as JSON values, a rollout as TASK-ROLLOUT."""
    plain: Any = VERSION | msgspec.to_builtins(answer)
    for told, one in zip(plain["requeued"], answer.requeued, strict=True):
        told["key"] = str(one.key)
    if answer.status is not None:
        for told, waiting in zip(plain["status"]["waiting"], answer.status.waiting, strict=True):
            told["key"] = str(waiting.key)
    return dict(plain)


def _text(answer: Answer) -> Iterator[str]:
    if answer.said:
        yield answer.said
    yield from (_left(one) for one in answer.requeued if one.attempt is None)
    if answer.status is not None:
        yield _how(answer.status)
        if not answer.said:
            yield from _waiting(answer.status.waiting)


def _left(one: Requeued) -> str:
    return f"{one.key}: {one.why or 'not in flight'}"


def _how(status: ControlStatus) -> str:
    known = status.planned is not None and status.ended is not None
    parts = [
        *([f"{status.ended}/{status.planned} ended"] if known else ()),
        f"{status.in_flight} in flight",
        *([f"{status.again} to be sent again"] if status.again else ()),
        f"limit {status.limit}" if status.limit is not None else "no limit",
        *(["paused"] if status.paused else ()),
        *(["draining"] if status.draining else ()),
        *([f"stopped: {status.stop_reason}"] if status.stop_reason else ()),
        *([f"a server is left alone for {status.held_for:.0f} s"] if status.held_for else ()),
    ]
    return " · ".join(parts)


def _waiting(longest: tuple[Waiting, ...]) -> Iterator[str]:
    if longest:
        yield "waiting longest:"
    for one in longest:
        where = f" · {one.host}" if one.host else ""
        yield f"  {one.key}  {one.seconds:.1f} s · {one.phase} · {one.server}{where}"

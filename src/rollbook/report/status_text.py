"""How a run is, as text: the law with its numbers, who did how well, what a resume would do and why, what is damaged.

Rules:
* 80 columns and no colour; a path, and a command that is to be typed, stand whole on one line.
* A run that cannot be believed says so before anything else, and is not told to go on.
* Nothing is counted here: every number is the status's own.

Source: collection.md §9.3; cases RC-21, RC-27, RC-61.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Final

from rollbook.records.command import CREDENTIAL, PUT_BACK, resume_words, typed, words_of
from rollbook.records.headline import Headline
from rollbook.records.run_status import GroupStatus, RunState, RunStatus, SessionStatus, counted, summed
from rollbook.report.status_words import (
    STATES,
    counts_in_words,
    damaged_places,
    duration,
    item,
    labelled,
    law_in_words,
    number_of,
    reason_line,
)
from rollbook.report.words import headline_in_words, shown
from rollbook.scoring.coverage_text import standing_in_words

_MARGIN: Final = 10
_LONGEST_COMMAND: Final = 500


def status_text(statuses: Sequence[RunStatus]) -> str:
    """Return one run told in full, or several as a list with their sum."""
    if len(statuses) == 1:
        return "\n".join(_one(statuses[0]))
    return "\n".join([*chain.from_iterable(map(_listed, statuses)), "", *_sum(statuses)])


def _one(status: RunStatus) -> Iterator[str]:
    yield from _damage(status)
    yield from _facts(status)
    yield from _section("Agents", chain.from_iterable(map(_group, status.groups)))
    yield from _section("Headlines", chain.from_iterable(map(_headline, status.headlines.items())))
    yield from _section("Sessions", chain.from_iterable(_session(session, status) for session in status.sessions))
    yield ""
    yield from _resume(status)
    yield from _section("Notes", chain.from_iterable(item(shown(note)) for note in status.notes))


def _damage(status: RunStatus) -> Iterator[str]:
    if status.damage:
        yield from ["DAMAGED", *damaged_places(status.damage, "  "), ""]


def _facts(status: RunStatus) -> Iterator[str]:
    run = f", run {status.run_id}" if status.run_id else ""
    yield shown(f"{'Run'.ljust(_MARGIN)}{os.fspath(status.output)}{run}{'' if status.managed else ', no manifest'}")
    yield from labelled("State", STATES[status.state], _MARGIN)
    yield from labelled("Law", law_in_words(status.coverage, has_plan=status.has_plan), _MARGIN)
    if status.coverage.failed_by_class:
        yield from labelled("Failed", counts_in_words(status.coverage.failed_by_class), _MARGIN)
    yield from labelled("Attempts", _attempts(status), _MARGIN)
    yield from labelled("Time", _time(status), _MARGIN)
    if status.tokens is not None:
        yield from labelled("Tokens", counts_in_words(status.tokens), _MARGIN)


def _attempts(status: RunStatus) -> str:
    refused = f", {status.refused} of them never ran" if status.refused else ""
    return f"{status.attempts} reserved{refused}; a rollout may fail {number_of(status.cap, 'time')}"


def _time(status: RunStatus) -> str:
    started = f"started {shown(status.started_at)}, " if status.started_at else ""
    return f"{started}{duration(status.elapsed_s)} of work in {number_of(len(status.sessions), 'session')}"


def _group(group: GroupStatus) -> list[str]:
    name = group.agent or "no agent"
    server = f" on {group.server}" if group.server else ""
    return item(shown(f"{name}{server}: {standing_in_words(group.coverage)}"))


def _headline(of: tuple[str, Headline]) -> Iterator[str]:
    return chain.from_iterable(map(item, headline_in_words(*of)))


def _session(session: SessionStatus, status: RunStatus) -> list[str]:
    where = f", {session.host} pid {session.pid}" if session.host else ""
    told = item(shown(f"{session.number}: {session.opened_at} {_end(session, status)}{where}"))
    return [*told, f"    {_cut(shown(session.command))}"] if session.command else told


def _cut(command: str) -> str:
    return f"{command[:_LONGEST_COMMAND]} …" if len(command) > _LONGEST_COMMAND else command


def _end(session: SessionStatus, status: RunStatus) -> str:
    if session.closed_at:
        return f"to {session.closed_at}" + (f", {session.how}" if session.how else "")
    runs = status.state is RunState.RUNNING and session is status.sessions[-1]
    return "until now, running" if runs else "and its process died"


def _resume(status: RunStatus) -> Iterator[str]:
    running = status.state is RunState.RUNNING
    if status.run_elsewhere is not None:
        yield from labelled("", f"No resume goes on with it: {status.run_elsewhere}.", 0)
        yield f"It stays with {number_of(status.coverage.planned, 'rollout')}:"
        yield from _reasons(counted((status.owed_by, status.not_owed_by)))
        return
    if status.coverage.owed:
        yield f"{'Still to run' if running else 'A resume would run'} {number_of(status.coverage.owed, 'rollout')}:"
        yield from _reasons(status.owed_by)
    else:
        yield "Nothing is left to run." if running else "A resume would run nothing."
    if status.not_owed_by:
        yield f"It {'leaves' if running else 'would leave'} {number_of(sum(status.not_owed_by.values()), 'rollout')}:"
        yield from _reasons(status.not_owed_by)
    yield from _what_to_type(status)


def _reasons(counts: Mapping[str, int]) -> Iterator[str]:
    return chain.from_iterable(item(reason_line(reason, count)) for reason, count in counts.items() if count)


def _what_to_type(status: RunStatus) -> Iterator[str]:
    if not status.is_believable:
        yield "Do not resume it before its files are mended: what the counts say may be wrong."
    elif status.coverage.owed and status.state is not RunState.RUNNING:
        yield from _go_on(status)


def _go_on(status: RunStatus) -> Iterator[str]:
    """Tell the last session's command as one that goes on; a run that no command line started is told what to add."""
    output, command = os.fspath(status.output), status.sessions[-1].command if status.sessions else ""
    if not command and status.input is not None:
        command = typed(["gym", "eval", "run", "--no-serve", "--input", os.fspath(status.input)])
    if not command:
        yield shown(f"Go on with the command that started it, and {typed(['--resume', '--output', output])}")
        return
    told = typed(resume_words(words_of(command), output))
    yield f"Go on: {shown(told)}"
    if CREDENTIAL in told:
        yield PUT_BACK


def _section(heading: str, lines: Iterator[str]) -> Iterator[str]:
    told = list(lines)
    return iter(["", heading, *told] if told else [])


def _listed(status: RunStatus) -> list[str]:
    """Tell one of several runs: where, how far, what is left."""
    owed = f", {status.coverage.owed} owed" if status.coverage.owed and status.run_elsewhere is None else ""
    owed += "" if status.has_plan else ", no plan"
    state = f"{STATES[status.state].partition(':')[0]}; {standing_in_words(status.coverage)}{owed}"
    return [shown(os.fspath(status.output)), *item(shown(state)), *damaged_places(status.damage, "    ")]


def _sum(statuses: Sequence[RunStatus]) -> Iterator[str]:
    yield f"{len(statuses)} runs"
    has_plan = all(status.has_plan for status in statuses)
    law = law_in_words(summed([status.coverage for status in statuses]), has_plan=has_plan)
    yield from labelled("Law", law, _MARGIN)
    yield from labelled("Owed", counts_in_words(counted(status.owed_by for status in statuses)), _MARGIN)
    yield from labelled("Left", counts_in_words(counted(status.not_owed_by for status in statuses)), _MARGIN)

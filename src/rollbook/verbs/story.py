"""What happened to one rollout, told from the log and from its records, in order.

Rules:
* Each chapter is a line on disk; what no line says is not told, but for an attempt that left none: it was lost.

Source: collection.md §4.11, §17.1.
"""

from collections.abc import Iterator
from typing import Final

from rollbook.ledger.history import History
from rollbook.ledger.manifest_store import read_log
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import payload_at
from rollbook.records.disposition import Disposition
from rollbook.records.manifest import Cut, LogEvent, Opened, Refused, Reserved, Stopped, unflat
from rollbook.records.outcome import Evidence, Failed, Interrupted, Masked, NeverStarted, Outcome, Scored
from rollbook.records.reading import read_row
from rollbook.records.record import Record
from rollbook.records.standing import Standing
from rollbook.records.story import Chapter, Story

_MESSAGE_SHOWN: Final = 200
_RESERVED: Final = "reserved"
_LAST: Final = 1 << 62
_WHY: Final = {
    Disposition.SCORED: "nothing: it is scored",
    Disposition.MASKED: "nothing: it left a result, which is masked",
    Disposition.UNSCORED: "nothing: it left a result without a reward",
    Disposition.APPROVED: "run it again: an operator approved that",
    Disposition.RETRYABLE: "run it again: its last attempt failed, and its attempts are not used up",
    Disposition.SETTLED: "nothing: its failure is final",
    Disposition.EXHAUSTED: "nothing: its attempts are used up",
    Disposition.HELD: "nothing: its answer is kept for a judge, which gym eval reverify asks; --resubmit runs it again",
    Disposition.HELD_INTERRUPTED: "nothing: it may have run, and nobody knows how far; --resubmit runs it again",
    Disposition.INTERRUPTED: "run it again: its last attempt left no result",
    Disposition.NEVER_STARTED: "run it: it was never started",
    Disposition.IN_FLIGHT: "nothing yet: it is in flight",
    Disposition.UNTOUCHED: "run it: nothing was sent yet",
}
_WITH_TASK: Final = "run it again: the repeats of its task are scored together, and not all of them are there"


def told(paths: RunPaths, history: History, standing: Standing, *, alive: bool) -> Story:
    """Return the story of the rollout that stands at `standing`."""
    chapters = [*_of_log(paths, standing), *_of_records(paths, history, standing)]
    decided = list(_decided(paths, history, standing))
    chapters += _unended(history, chapters, alive=alive)
    chapters = sorted([*chapters, *decided], key=_position)
    resume = _WITH_TASK if standing.with_task else _WHY[standing.disposition]
    return Story(standing.key, standing.planned, tuple(chapters), standing.disposition.value.replace("_", " "), resume)


def _decided(paths: RunPaths, history: History, standing: Standing) -> Iterator[Chapter]:
    """Yield what a person decided about this rollout's attempts."""
    key = standing.key
    for approval in history.manifest.approvals if history.manifest else ():
        for task, rollout, attempt in (*approval.masked, *approval.released):
            if (task, rollout) == (key.task, key.rollout):
                said = f"approved to run again by {approval.who}: {approval.why}"
                yield Chapter(attempt, None, said, str(paths.manifest))


def _position(chapter: Chapter) -> tuple[int, bool]:
    """Put attempts in order, each with its reservation first; what is about no attempt comes last."""
    return (_LAST if chapter.attempt is None else chapter.attempt, chapter.what != _RESERVED)


def _of_log(paths: RunPaths, standing: Standing) -> Iterator[Chapter]:
    session: int | None = None
    for line, event in read_log(paths.manifest_log, lambda _error: None):
        if isinstance(event, Opened):
            session = event.session
        elif isinstance(event, Stopped) and standing.disposition is Disposition.NEVER_STARTED:
            yield Chapter(None, session, f"never started: {event.why}", f"{paths.manifest_log}:{line}")
        for attempt in _attempts(event, standing):
            yield Chapter(attempt, session, _what(event), f"{paths.manifest_log}:{line}")


def _attempts(event: LogEvent, standing: Standing) -> Iterator[int]:
    if isinstance(event, Reserved | Refused | Cut):
        yield from (attempt for key, attempt in unflat(event.a) if key == standing.key)


def _what(event: LogEvent) -> str:
    match event:
        case Refused(why=why):
            return f"never ran: {why}"
        case Cut(why=why):
            return f"cut: {why}"
        case _:
            return _RESERVED


def _of_records(paths: RunPaths, history: History, standing: Standing) -> Iterator[Chapter]:
    for record in history.standings.records_of(standing.key):
        yield Chapter(record.attempt, None, _ended(paths, record), _place(paths, record))


def _ended(paths: RunPaths, record: Record) -> str:
    """Say how an attempt ended, in the words of its own row."""
    if record.place is None:
        return _words(record.outcome)
    line = payload_at(paths.holding(record.place.file), record.place)
    return _words(read_row(line, record.place.file).outcome)


def _words(outcome: Outcome) -> str:
    match outcome:
        case Scored(reward):
            return f"scored: reward {reward:g}"
        case Failed() | Interrupted():
            ended = "failed" if isinstance(outcome, Failed) else "interrupted"
            return f"{ended}: {outcome.failure_class}: {outcome.message[:_MESSAGE_SHOWN]}"
        case NeverStarted(reason):
            return f"never started: {reason}"
        case Evidence(message):
            return f"evidence: {message[:_MESSAGE_SHOWN]}"
        case _:
            masked = isinstance(outcome, Masked)
            return "masked: the reward is no measurement" if masked else "unscored: a result without a reward"


def _unended(history: History, chapters: list[Chapter], *, alive: bool) -> Iterator[Chapter]:
    ended = {chapter.attempt for chapter in chapters if chapter.what != _RESERVED}
    for chapter in chapters:
        if chapter.what != _RESERVED or chapter.attempt in ended:
            continue
        running = alive and chapter.session == history.log.session
        what = "in flight" if running else "lost with the process that had sent it"
        yield Chapter(chapter.attempt, chapter.session, what, chapter.place)


def _place(paths: RunPaths, record: Record) -> str:
    return "" if record.place is None else f"{paths.holding(record.place.file)}:{record.place.line}"

"""What a judge owes a run, judged for the run itself: which rows, under which admission, and how they are closed.

Rules:
* A rollout is judged again where the row that stands keeps its answer; how often, the run's cap says.
* An admission is in the manifest before the judge is asked, and leaves it once the row that closes it is on disk.
* No attempt number is handed out: the row that closes an admission is of the attempt whose answer was judged, and keeps
  that very answer.
* Only a result, or a judge that failed once more, moves the rollout; anything else is evidence.

Source: collection.md §5.4.2, §5.4.3, §5.4.7, §9.1, §21.3 (23).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from rollbook.ledger.handed import Commit, Handed
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.writer import Writer
from rollbook.outcomes.verdict import as_evidence
from rollbook.records.codec import encode
from rollbook.records.columns import packed_key, unpacked_key
from rollbook.records.disposition import Disposition, Rules
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import JUDGE_FAILED
from rollbook.records.identity import ATTEMPT_INDEX_KEY_NAME, RolloutKey
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import DELIVERABLES_KEY, NG_FAILURE_MESSAGE_KEY, RESPONSE_KEY
from rollbook.records.outcome import Evidence, Failed, Masked, Result, Unscored
from rollbook.records.place import File, Place
from rollbook.records.record import Record
from rollbook.records.rejudgment import (
    REJUDGE_OPERATION_ID_KEY,
    RejudgeAdmission,
    rejudge_predecessor_id,
    row_sha256,
)
from rollbook.records.row_identity import identity_of_row
from rollbook.records.standing import Standing, Standings
from rollbook.records.task import Rollout
from rollbook.verbs.reverify_answers import JUDGE_CLASSES, Seen, row_at, seen_in

ADMITTED_TOGETHER: Final = 1024
_TRANSPORT: Final = "transport_"
_ROW: Final = msgspec.json.Decoder(dict[str, object])

WITHOUT_ANSWER: Final = "keep no answer"
FINAL: Final = "are final"
USED_UP: Final = "have used up their attempts"


class Owed(NamedTuple):
    """The row whose answer is judged, and the attempt that it is of."""

    place: Place
    attempt: int


@dataclass(slots=True)
class Rejudgeable:
    """What a judge owes a run (`identities`: rollout and attempt of each), and what is left out, by why."""

    paths: RunPaths
    standings: Standings
    rules: Rules
    with_invalid: bool = False
    owed: dict[int, Owed] = field(default_factory=dict)
    names: dict[int, tuple[str | None, str | None]] = field(default_factory=dict)
    identities: set[tuple[str, int]] = field(default_factory=set)
    left_out: Counter[str] = field(default_factory=Counter)

    def look(self) -> None:
        """Find them in the files of the run."""
        for file in (File.FAILURES, File.RESULTS):
            for place, seen in seen_in(self.paths, file):
                standing = self.standings.standing(seen.key, self.rules)
                record = standing.record
                if record is None or record.place is None or not _lies(record.place, place):
                    continue
                if _is_owed(seen, record, with_invalid=self.with_invalid):
                    self._take(seen, standing, Owed(place, record.attempt))

    def _take(self, seen: Seen, standing: Standing, owed: Owed) -> None:
        why = self._why_not(seen, standing)
        if why is not None:
            self.left_out[why] += 1
            return
        self.owed[packed_key(seen.key)] = owed
        self.identities.add((seen.identity, owed.attempt))
        record = standing.record
        self.names[packed_key(seen.key)] = (None, None) if record is None else (record.agent, record.server)

    def _why_not(self, seen: Seen, standing: Standing) -> str | None:
        if not seen.has_response:
            return WITHOUT_ANSWER
        if standing.disposition is Disposition.SETTLED:
            return FINAL
        failures = sum(isinstance(one.outcome, Failed) for one in self.standings.records_of(seen.key))
        return USED_UP if failures >= self.rules.cap else None

    def holds(self, key: RolloutKey) -> bool:
        """Whether a judge owes `key`."""
        return packed_key(key) in self.owed

    def of(self, key: RolloutKey) -> JsonObject:
        """Return the row that keeps the answer."""
        return row_at(self.paths, self.owed[packed_key(key)].place)

    def who(self, key: RolloutKey) -> tuple[str | None, str | None]:
        """Return the agent and the environment server of the row."""
        return self.names[packed_key(key)]

    def links(self, key: RolloutKey) -> JsonMapping:  # noqa: ARG002  an admission has them
        """Return nothing."""
        return {}

    def __iter__(self) -> Iterator[RolloutKey]:
        """Yield the rollouts."""
        return map(unpacked_key, self.owed)


def _lies(place: Place, other: Place) -> bool:
    return (place.file, place.offset) == (other.file, other.offset)


def _is_owed(seen: Seen, record: Record, *, with_invalid: bool) -> bool:
    """Whether a judge owes what this row keeps: it failed, could not be reached, or left no grade."""
    match record.outcome:
        case Failed():
            return seen.is_of_judge
        case Masked():
            kind = seen.kind if isinstance(seen.kind, str) else ""
            return kind in JUDGE_CLASSES or kind.startswith(_TRANSPORT) or (with_invalid and seen.is_invalid)
        case Unscored():
            return seen.has_response
        case _:
            return with_invalid and seen.is_invalid


@dataclass(slots=True)
class Admissions:
    """The re-judgments that a manifest admits. `save` puts those that are open into it; they are open until closed."""

    operation: str
    at: str
    save: Callable[[Sequence[RejudgeAdmission]], None]
    open: dict[tuple[str, int], RejudgeAdmission] = field(default_factory=dict)

    def admit(self, rows: Sequence[tuple[JsonMapping, int]]) -> list[JsonObject]:
        """Admit judging the answers of `rows`, (saved row, attempt), all in one write; return what closes each."""
        links = [self._links(row, attempt) for row, attempt in rows]
        self.save(tuple(self.open.values()))
        return links

    def _links(self, row: JsonMapping, attempt: int) -> JsonObject:
        """Return the links of one row's admission: the one that an earlier session left open, or a new one."""
        who, predecessor = identity_of_row(row), rejudge_predecessor_id(row)
        if who is None or predecessor is None:
            return {REJUDGE_OPERATION_ID_KEY: self.operation}
        digest, known = row_sha256(row), self.open.get((who[1], attempt))
        if known is None or (known.predecessor_id, known.predecessor_sha256) != (predecessor, digest):
            known = RejudgeAdmission(
                operation_id=self.operation,
                identity=who[1],
                attempt=attempt,
                predecessor_id=predecessor,
                predecessor_sha256=digest,
                admitted_at=self.at,
            )
            self.open[who[1], attempt] = known
        return known.links

    def close(self, rollout: Rollout) -> None:
        """Note that the row which closes the admission of `rollout` is on disk."""
        self.open.pop((rollout.rollout_id, rollout.attempt), None)

    def settle(self) -> None:
        """Put what is still open into the manifest."""
        self.save(tuple(self.open.values()))


def admitted(rollouts: Iterator[Rollout | None], owed: Rejudgeable, admissions: Admissions) -> Iterator[Rollout | None]:
    """Yield `rollouts` with their attempts and links, so many at a time: those are in the manifest before the first."""
    while batch := list(islice(rollouts, ADMITTED_TOGETHER)):
        yield None
        known = [one for one in batch if one is not None]
        attempts = [owed.owed[packed_key(one.key)].attempt for one in known]
        rows = [(owed.of(one.key), attempt) for one, attempt in zip(known, attempts, strict=True)]
        links = admissions.admit(rows) if rows else []
        for rollout, attempt, link in zip(known, attempts, links, strict=True):
            yield _linked(rollout, attempt, link)


def _linked(rollout: Rollout, attempt: int, links: JsonMapping) -> Rollout:
    stamps = rollout.stamps | dict(links) | ({ATTEMPT_INDEX_KEY_NAME: attempt} if attempt else {})
    return msgspec.structs.replace(rollout, attempt=attempt, stamped=encode(stamps)[1:-1])


class RejudgeLedger:
    """What dispatch is given to write re-judgments to."""

    def __init__(self, writer: Writer, standings: Standings, admissions: Admissions) -> None:
        self._writer = writer
        self._standings = standings
        self._admissions = admissions
        self.how: str | None = None

    def reserve(self, rollout: Rollout) -> Handed[Rollout]:
        """Return `rollout` as it is: its attempt was handed out when it was run.

        A row that names no run has an attempt that nobody handed out; that is made up for.
        """
        attempts = self._standings.columns.attempts
        seat = self._standings.columns.seat(packed_key(rollout.key))
        if attempts.is_handed_out(seat, rollout.attempt):
            return Handed(rollout, _done())
        attempts.reserve(seat, rollout.attempt, 0)
        attempts.end(seat, rollout.attempt)
        return self._writer.reserve(rollout.key, rollout.attempt).of(rollout)

    def write(self, rollout: Rollout, ending: Ending, elapsed: float | None = None) -> Handed[Record]:
        """Save what a judging came to; its admission is closed once it is on disk."""
        told = kept_answer(ending, rollout)
        closes = isinstance(told.outcome, Result | Failed)

        def safe(record: Record) -> Record:
            if closes:
                self._admissions.close(rollout)
            return self._standings.add(record)

        return self._writer.write(rollout, told, elapsed).followed_by(safe)

    async def refused(self, rollout: Rollout, why: str) -> None:
        """Do nothing: the attempt ran when it was run, and its admission stays open."""

    async def cut(self, rollouts: Sequence[Rollout], why: str) -> None:
        """Do nothing, as for one that was refused."""

    async def stopped(self, why: str) -> None:
        """Note why no more are judged."""
        self.how = why


def _done() -> Commit:
    done = Commit(loop=asyncio.get_running_loop())
    done.settle(None)
    return done


def kept_answer(ending: Ending, rollout: Rollout) -> Ending:
    """Return what is saved of a judging: the answer that was judged, or evidence where nobody judged it."""
    failed = ending.outcome
    judged = isinstance(failed, Result) or (isinstance(failed, Failed) and failed.failure_class == JUDGE_FAILED)
    if not judged:
        return as_evidence(ending) if isinstance(failed, Failed) else _no_result(ending)
    sent = _ROW.decode(rollout.line)
    answer = {key: sent[key] for key in (RESPONSE_KEY, DELIVERABLES_KEY) if key in sent}
    return msgspec.structs.replace(ending, payload=ending.fields() | answer, kept=None)


def _no_result(ending: Ending) -> Ending:
    message = getattr(ending.outcome, "message", "") or "the verifier says that no result exists"
    return Ending(Evidence(message), {NG_FAILURE_MESSAGE_KEY: message})

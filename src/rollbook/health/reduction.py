"""All examined records → copies marked, verdicts and task entries in order, and what a summary counts.

Rules:
* In the order of task, rollout and stage, copies in the order of the files: the reports do not depend on who examined
  which record, or when.
* Copies are records of one attempt; of several attempts the latest is the repeat, and the others are history.
* Memory holds columns; lines and task entries go out as they come.

Source: collection.md §7.1-§7.3.
"""

from array import array
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from typing import Final

import msgspec

from rollbook.health.batch import BOUND, NO_STAGE, SOUND, SUCCESS, Columns, plain_id, task_name, told_of
from rollbook.health.checks import BIT, CHECK_IDS, CONSISTENTLY_UNHEALTHY, DUPLICATE, NO_SUCCESSFUL_CALLS, names_of
from rollbook.health.finding import Finding, Verdict
from rollbook.health.tasks import Repeat, TaskHealth, one_repeat, task_health

ToldAt = Callable[[int], bytes]
Said = tuple[int, int]
"""Bits of the table of checks: of those that found something, and of those without evidence."""
Write = Callable[[bytes], object]
Keys = tuple["array[int]", "array[int]", "array[int]"]
_TASK_BITS: Final = BIT[CONSISTENTLY_UNHEALTHY] | BIT[NO_SUCCESSFUL_CALLS]
_ENCODER: Final = msgspec.json.Encoder()
_SAMPLED: Final = 2039
"""Of so many records one is looked at to find the bounds of parts: a prime, which no order of repeats follows."""
_SAMPLES_A_PART: Final = 16


class Counts(msgspec.Struct):
    """What was counted over records and over tasks, by the checks that found something and those without evidence."""

    records: int = 0
    tasks: int = 0
    said: Counter[Said] = msgspec.field(default_factory=Counter)
    said_of_tasks: Counter[Said] = msgspec.field(default_factory=Counter)

    @property
    def verdicts(self) -> Counter[Verdict]:
        """How many records have which verdict."""
        verdicts: Counter[Verdict] = Counter()
        for (flagged, unobserved), count in self.said.items():
            verdicts[_verdict(flagged, unobserved)] += count
        return verdicts

    def issues(self) -> dict[str, int]:
        """Return in how many records (tasks, for their checks) each check found something."""
        said = self.said + self.said_of_tasks
        return {name: _with(said, 0, BIT[name]) for name in CHECK_IDS}

    def coverage(self, ignored: int) -> dict[str, dict[str, int]]:
        """Return how many records (tasks) each check looked at, could not judge, and was to leave out."""
        return {name: self._covered(BIT[name], ignored) for name in CHECK_IDS}

    def _covered(self, bit: int, ignored: int) -> dict[str, int]:
        is_of_tasks = bool(bit & _TASK_BITS)
        total = self.tasks if is_of_tasks else self.records
        if bit & ignored:
            return {"evaluated": 0, "unobserved": 0, "ignored": total}
        unobserved = _with(self.said_of_tasks if is_of_tasks else self.said, 1, bit)
        return {"evaluated": total - unobserved, "unobserved": unobserved, "ignored": 0}


def _with(counts: Counter[Said], which: int, bit: int) -> int:
    return sum(count for masks, count in counts.items() if masks[which] & bit)


def _verdict(flagged: int, unobserved: int) -> Verdict:
    if flagged:
        return Verdict.UNHEALTHY
    return Verdict.UNOBSERVED if unobserved else Verdict.HEALTHY


class Reduction:
    """Goes through `columns` once. `told_at` gives what was kept as text of the record at a place."""

    def __init__(self, columns: Columns, told_at: ToldAt, ignored: int) -> None:
        self._columns = columns
        self._told_at = told_at
        self._ignored = ignored
        self._lists: dict[int, bytes] = {}
        self.counts = Counts(records=len(columns))

    def write(self, line: Write, task: Write) -> Counts:
        """Give each verdict as a line, and each task as a member of an object, in order; return what was counted."""
        columns = self._columns
        for number, places in groupby(in_order(columns), key=columns.tasks.__getitem__):
            repeats = list(self._repeats(places, line))
            health = task_health(repeats, self._ignored)
            self.counts.tasks += 1
            self.counts.said_of_tasks[health.flagged, health.unobserved] += 1
            task(_task_entry(number, health))
        return self.counts

    def _repeats(self, places: Iterator[int], line: Write) -> Iterator[Repeat]:
        for _, records in groupby(places, key=self._identity):
            first, *others = records
            yield self._settled([first, *others], line) if others else self._repeat(first, 1, line)

    def _settled(self, places: list[int], line: Write) -> Repeat:
        """Return the repeat that several records are of: what its latest attempt says."""
        attempts = [self._columns.attempts[place] for place in places]
        copies, latest = Counter(attempts), max(attempts)
        repeats = [self._repeat(place, copies[at], line) for place, at in zip(places, attempts, strict=True)]
        return one_repeat([repeat for repeat, at in zip(repeats, attempts, strict=True) if at == latest])

    def _identity(self, place: int) -> tuple[int, int]:
        return self._columns.rollouts[place], self._columns.stages[place]

    def _repeat(self, place: int, copies: int, line: Write) -> Repeat:
        columns = self._columns
        marks, unobserved, flagged = columns.marks[place], columns.unobserved[place], columns.flagged[place]
        is_copy = copies > 1 and marks & SOUND and not BIT[DUPLICATE] & self._ignored
        flagged |= BIT[DUPLICATE] if is_copy else 0
        verdict = _verdict(flagged, unobserved)
        self.counts.said[flagged, unobserved] += 1
        line(self._line(place, verdict, copies if is_copy else 0))
        return Repeat(verdict, bool(marks & BOUND), bool(marks & SUCCESS))

    def _line(self, place: int, verdict: Verdict, copies: int) -> bytes:
        columns = self._columns
        task, rollout, stage = columns.tasks[place], columns.rollouts[place], columns.stages[place]
        told = told_of(self._told_at(place)) if columns.lengths[place] else told_of(b"")
        findings = told.findings
        if copies:
            findings = [*findings, Finding(DUPLICATE, detail={"copies": copies}).as_json()]
        name = told.rollout_id or plain_id(task, rollout)
        return b"".join(
            (
                b'{"_ng_task_index":',
                _ENCODER.encode(task_name(task)),
                b',"_ng_rollout_index":%d' % rollout,
                b"" if stage == NO_STAGE else b',"stage_index":%d' % stage,
                b',"rollout_id":',
                _ENCODER.encode(name),
                b',"verdict":"%b","findings":' % verdict.value.encode(),
                _ENCODER.encode(findings) if findings else b"[]",
                b',"unobserved":',
                self._listed(columns.unobserved[place]),
                b"}\n",
            )
        )

    def _listed(self, mask: int) -> bytes:
        if mask not in self._lists:
            self._lists[mask] = _ENCODER.encode(names_of(mask))
        return self._lists[mask]


def in_order(columns: Columns) -> Iterable[int]:
    """Return the places of the records by task, rollout and stage; copies as they came."""
    keys = (columns.tasks, columns.rollouts, columns.stages)
    last = (-1, -1, NO_STAGE - 1)
    if all(last <= (last := triple) for triple in zip(*keys, strict=True)):
        return range(len(columns))
    return _sorted_in_parts(keys)


def _sorted_in_parts(keys: Keys) -> Iterator[int]:
    """Yield the places by their keys, of which only a part at a time is sorted as objects; a sample says which part."""
    sample = sorted(zip(*(key[::_SAMPLED] for key in keys), strict=True))
    bounds = sample[_SAMPLES_A_PART::_SAMPLES_A_PART]
    parts = [array("Q") for _ in range(len(bounds) + 1)]
    for place, triple in enumerate(zip(*keys, strict=True)):
        parts[bisect(bounds, triple)].append(place)
    for part in parts:
        order = part.tolist()
        for key in reversed(keys):
            order.sort(key=key.__getitem__)
        yield from order


def _task_entry(number: int, health: TaskHealth) -> bytes:
    verdicts = {verdict.value: health.verdicts[verdict] for verdict in Verdict}
    entry = {"repeats": health.repeats, **verdicts, "flags": names_of(health.flagged)}
    return b"%b: %b" % (_ENCODER.encode(str(task_name(number))), _ENCODER.encode(entry))

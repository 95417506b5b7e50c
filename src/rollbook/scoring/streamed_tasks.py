"""The entry of one task, from the numbers of its rows: `task_entries`, as bytes.

Rules:
* Tasks that follow each other and have as many rows and the same numbers are written together: their numbers become
  texts column by column, and are put into one template. Any other task is written by itself, to the same text.
* Equal numbers are described once for very many tasks.

Source: collection.md §6.4 (4).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from operator import sub
from typing import Any, Final

import msgspec

from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME
from rollbook.scoring.columns import described_columns
from rollbook.scoring.distribution import Distribution
from rollbook.scoring.entry_layout import COMPACT, Layout
from rollbook.scoring.streamed_shape import HEAD, Names, Text
from rollbook.scoring.struct_types import maker
from rollbook.scoring.task_figures import Column, described_alone, described_parts

_KEPT: Final = 1 << 11
_WHOLE: Final = 100.0
_RARE: Final = 4
_FEW: Final = 3
"""So few tasks that are alike are written one by one."""
_MOST_ROWS: Final = 64
_STATISTICS: Final = ("mean", "max", "min", "median", "std")
_ROLLOUT_ID: Final = "rollout_id"
_REST: Final = (
    *("sample", "num_rollouts", "expected_num_rollouts", "missing_num_rollouts", "reward_profile_completion_pct"),
    *("rollout_infos", TASK_INDEX_KEY_NAME),
)
_HOLE, _IN_TEXT = "\x7f", "\x7f\x7f"
_CUTS: Final = re.compile(f'{_IN_TEXT}|"{_HOLE}"'.encode())
_LOOKED_AT: Final = 64
_Texts = list[bytes] | bytes
"""Texts of numbers, one for each; of equal ones it is there once."""
_encode: Final = msgspec.json.Encoder().encode


class TaskEntries:
    """Makes the entries of tasks whose rows have the same `names`, laid out by `layout`."""

    def __init__(self, names: Names, layout: Layout = COMPACT) -> None:
        self._names = names
        self._layout = layout
        self._made_info, self._made = _makers(names)
        self._templates: dict[tuple[int, tuple[bool, ...]], list[bytes]] = {}
        self._known: dict[tuple[bytes, ...], tuple[bytes, ...]] = {}
        self._has_template = _ROLLOUT_ID not in names and not any(_HOLE in name for name in names)

    def entries(
        self,
        columns: Sequence[Column],
        starts: Sequence[int],
        samples: Sequence[Text],
        planned: Sequence[int | None],
    ) -> Iterator[bytes]:
        """Yield the entry of each task.

        `columns` are the measured rows, field by field, and `starts` says where those of each task begin; `samples` are
        what is shown of each task, and `planned` is how many rollouts each was to have; None: those at hand.
        """
        bounds = [*starts, len(columns[0])]
        for first, stop in _alike(bounds):
            start, each = bounds[first], bounds[first + 1] - bounds[first]
            tasks, here = slice(first, stop), slice(start, start + each * (stop - first))
            own = [column[here] for column in columns] if stop - first < len(starts) else columns
            yield from self._of_alike(own, each, samples[tasks], planned[tasks])

    def _of_alike(
        self, columns: Sequence[Column], each: int, samples: Sequence[Text], planned: Sequence[int | None]
    ) -> Iterable[bytes]:
        """Return the entries of tasks of `each` rows."""
        if self._has_template and len(samples) > _FEW and each <= _MOST_ROWS:
            found = self._together(columns, each, samples, [wanted or each for wanted in planned])
            if found is not None:
                return found
        starts = range(0, len(columns[0]), each)
        one_by_one = zip(starts, samples, planned, strict=True)
        return (
            self._alone([column[start : start + each] for column in columns], sample, wanted or each)
            for start, sample, wanted in one_by_one
        )

    def _alone(self, columns: Sequence[Column], sample: Text, wanted: int) -> bytes:
        tasks, rollouts, numbers = columns[0], columns[1], columns[HEAD:]
        found = len(tasks)
        ids = [f"{tasks[0]}:{rollout}" for rollout in rollouts]
        infos = list(map(self._made_info, ids, tasks, rollouts, *numbers))
        told = (msgspec.Raw(sample), found, wanted, wanted - found, _WHOLE * found / wanted, infos, tasks[0])
        return self._layout.text(_encode(self._made(*_statistics(self._names, numbers), *told)))

    def _together(
        self, columns: Sequence[Column], each: int, samples: Sequence[Text], planned: Sequence[int]
    ) -> Iterable[bytes] | None:
        """Return the entries of tasks of which all have the same numbers; None where some lack one, or one is odd."""
        there = tuple(column[0] is not None for column in columns[HEAD:])
        every = [column for column, is_there in zip(columns[HEAD:], there, strict=True) if is_there]
        lacking = sum(column.count(None) for column in columns[HEAD:])
        if lacking != there.count(False) * len(columns[0]):
            return None
        numbers = list(map(_texts, every))
        statistics: list[_Texts] = []
        for column, texts in zip(every, numbers, strict=True):
            fives = self._fives(column, texts, each)
            if fives is None:
                return None
            statistics += fives
        task = _texts(columns[0][::each])
        infos: list[_Texts] = []
        for at in range(each):
            rollout = _texts(columns[1][at::each])
            infos += (task, rollout, task, rollout)
            infos += [texts if isinstance(texts, bytes) else texts[at::each] for texts in numbers]
        told = (self._layout.members(samples), *_coverage(each, planned))
        return _filled(self._template(each, there), (*statistics, *told, *infos, task))

    def _template(self, each: int, there: tuple[bool, ...]) -> list[bytes]:
        """Return the text of an entry of `each` rows that have these of the names, cut where each value belongs."""
        template = self._templates.get((each, there))
        if template is None:
            names = [name for name, is_there in zip(self._names, there, strict=True) if is_there]
            made_info, made = _makers(names)
            info = made_info(f"{_IN_TEXT}:{_IN_TEXT}", *repeat(_HOLE, 2 + len(names)))
            holes = repeat(_HOLE, len(_STATISTICS) * len(names) + len(_REST) - 2)
            text = self._layout.text(_encode(made(*holes, [info] * each, _HOLE)))
            template = self._templates[each, there] = _CUTS.split(text)
        return template

    def _fives(self, column: Column, texts: _Texts, each: int) -> Iterable[_Texts] | None:
        """Return the five statistics of every `each` numbers of a column; None where it takes a closer look."""
        if isinstance(texts, bytes):
            five = described_alone(column[:each])
            return map(_encode, five) if five else None
        if len(set(texts[:_LOOKED_AT])) * _RARE > len(texts[:_LOOKED_AT]):
            described = described_parts(column, each)
            return None if described is None else map(_texts, described)
        get, parts = self._known.get, zip(*[iter(texts)] * each, strict=True)
        found = [get(part) or self._five(part, column[at * each : (at + 1) * each]) for at, part in enumerate(parts)]
        return map(list, zip(*found, strict=True)) if all(found) else None

    def _five(self, part: tuple[bytes, ...], column: Column) -> tuple[bytes, ...]:
        """Return the five statistics of a task's numbers; nothing where it takes a closer look."""
        if len(self._known) >= _KEPT:
            self._known.clear()
        texts = self._known[part] = tuple(map(_encode, described_alone(column)))
        return texts


def _makers(names: Sequence[str]) -> tuple[Any, Any]:
    """Return what makes the part of an entry that tells of a row, and what makes an entry."""
    statistics = (f"{statistic}/{name}" for name in names for statistic in _STATISTICS)
    return maker((_ROLLOUT_ID, TASK_INDEX_KEY_NAME, ROLLOUT_INDEX_KEY_NAME, *names)), maker((*statistics, *_REST))


def _alike(bounds: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield (first, one behind the last) of tasks that follow each other and have as many rows."""
    sizes = list(map(sub, bounds[1:], bounds))
    if sizes.count(sizes[0]) == len(sizes):
        yield 0, len(sizes)
        return
    first = 0
    for at, size in enumerate(sizes):
        if size != sizes[first]:
            yield first, at
            first = at
    yield first, len(sizes)


def _texts(numbers: Sequence[int | float]) -> _Texts:
    """Return numbers as they are written."""
    first = numbers[0]
    if first and numbers.count(first) == len(numbers) and len(set(map(type, numbers))) == 1:
        return _encode(first)
    texts = _encode(numbers)[1:-1].split(b",")
    return texts[0] if not first and texts.count(texts[0]) == len(texts) else texts


def _filled(cuts: Sequence[bytes], values: Iterable[_Texts]) -> Iterator[bytes]:
    """Yield texts that were cut where `values` belong, with one of each values between the cuts."""
    parts: list[Iterable[bytes]] = []
    said = cuts[0]
    for value, cut in zip(values, cuts[1:], strict=True):
        if isinstance(value, bytes):
            said += value + cut
        else:
            parts += (repeat(said), value)
            said = cut
    return map(b"".join, zip(*parts, repeat(said)))


def _coverage(each: int, planned: Sequence[int]) -> list[_Texts]:
    """Return how many rollouts tasks have, were to have and lack, and which share is there, as texts."""
    missing = [wanted - each for wanted in planned]
    shares = [_WHOLE * each / wanted for wanted in planned]
    return [_encode(each), _texts(planned), _texts(missing), _texts(shares)]


def _statistics(names: Names, columns: Sequence[Column]) -> Iterable[Any]:
    """Return the five statistics of each field, which some rows may lack."""
    fives = list(map(described_alone, columns))
    if all(fives):
        return chain.from_iterable(fives)
    there = {
        name: [value for value in column if value is not None] for name, column in zip(names, columns, strict=True)
    }
    rows = len(columns[0]) if columns else 0
    described = described_columns({name: Distribution(values) for name, values in there.items() if values}, rows)
    return [described.get(f"{statistic}/{name}") for name in names for statistic in _STATISTICS]

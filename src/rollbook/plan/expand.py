"""Source rows → materialized rows, in plan order: the pipeline of preprocessing.

Rules:
* Rows are never mutated; each repeat is a shallow copy.
* A task is equal text: rows alike in every byte extend the same task's repeats, as do rows that bring one number along.
* A part of the tasks numbers them as the whole does, so that the parts together are the whole.
* Rows stream through; what is kept is a digest per task and a counter per task, and neither once rows are at an end.

Source: collection.md §2.1 to §2.7, §2.12.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, NamedTuple

from rollbook.config.taskset_routes import how_to_route
from rollbook.errors import InputError
from rollbook.plan.options import PlanOptions
from rollbook.plan.repeats import PerKey, seeded
from rollbook.plan.rollout_ids import RolloutIds
from rollbook.plan.targets import Routing, Target, route
from rollbook.plan.tasks import RolloutCounts, TaskNumbers
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME, is_index
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.keys import (
    AGENT_REF_KEY,
    NG_ENVIRONMENT_SERVER_KEY,
    RESPONSES_CREATE_PARAMS_KEY,
    SKILLS_REF_KEY,
)
from rollbook.records.source import SourceRow, is_materialized

_LISTED: Final = 20


class _Task(NamedTuple):
    """A task that is repeated: its number, what every repeat holds, and the row that it is made of."""

    number: int
    base: JsonObject
    source: SourceRow


class Expansion:
    """One pass over source rows. Iterate `rows` to its end; then `notes` says what a person should know."""

    def __init__(self, options: PlanOptions) -> None:
        self.options = options
        self.notes: list[str] = []
        self._repeats = PerKey(options.repeats)
        self._seeds = PerKey(options.add_seed)
        self._counted: tuple[int, int] | None = None
        self._planned_tasks = 0
        self._task_of = TaskNumbers()
        self._rollouts = RolloutCounts()
        self._ids = RolloutIds()
        self._unrouted: list[str] = []
        self._unrouted_tasksets: dict[str, str] = {}
        self._replaced: dict[tuple[str, str], None] = {}
        self._fanned_out: set[str] = set()
        self._ids_found: set[str] = set()

    def rows(self, sources: Iterable[SourceRow]) -> Iterator[JsonObject]:
        """Yield one materialized row per owed rollout.

        Raises:
            InputError: rows without an agent, without a repeats entry, with an id that names several rollouts, or of a
                taskset without a route: all of them, after the last row was looked at. A row with what an episode task
                cannot have.

        """
        for source, number in self._limited(self._chosen(sources)):
            routing = route(source, self.options)
            if routing is None:
                self._unrouted.append(source.place)
                continue
            if routing.unrouted is not None:
                self._unrouted_tasksets.setdefault(routing.unrouted, source.place)
                continue
            if routing.replaced:
                self._replaced[routing.replaced] = None
            if routing.fanned_out:
                self._fanned_out.add(routing.basis or "")
            task = _Task(number, self._prepared(source, number), source)
            for target in routing.targets:
                yield from self._repeated(task, target, routing)
        self._finish()
        self._forget()

    def _forget(self) -> None:
        """Keep nothing of the tasks but what is asked about them: a plan is folded next, which takes as much again."""
        self._counted = self._rollouts.largest()
        self._task_of, self._rollouts = TaskNumbers(), RolloutCounts()

    def _chosen(self, sources: Iterable[SourceRow]) -> Iterator[SourceRow]:
        """Yield the rows of chosen tasks, each task once. Tasks of several tasksets may have one id: all are chosen."""
        wanted = self.options.task_ids
        if wanted is None:
            yield from sources
            return
        seen: set[bytes] = set()
        for source in sources:
            stored = stored_task_id(source.row)
            if stored in wanted and source.task not in seen:
                seen.add(source.task)
                self._ids_found.add(stored)
                yield source

    def _limited(self, sources: Iterable[SourceRow]) -> Iterator[tuple[SourceRow, int]]:
        """Yield rows with the numbers of their tasks."""
        limit = self.options.limit
        for source in sources:
            digest = source.task
            task = self._task_of.get(digest)
            if task is None:
                if limit is not None and len(self._task_of) >= limit:
                    continue
                task = self._task_index(source)
                self._task_of.add(digest, task)
                self._planned_tasks += self._is_in_part(task)
            if self._is_in_part(task):
                yield source, task
        if limit is not None and limit > len(self._task_of):
            self.notes.append(f"limit {limit} is more than the {len(self._task_of)} tasks there are; all of them run")
        if self._task_of and not self._planned_tasks:
            self.notes.append(f"no task is in this part: there are {len(self._task_of)}")

    def _is_in_part(self, task: int) -> bool:
        return self.options.part is None or task % self.options.part[1] == self.options.part[0] - 1

    @property
    def tasks(self) -> int:
        """How many tasks the plan holds so far."""
        return self._planned_tasks

    @property
    def largest_task(self) -> tuple[int, int] | None:
        """The task with most rollouts so far, and how many it has; None as long as there is none."""
        return self._counted or self._rollouts.largest()

    def _task_index(self, source: SourceRow) -> int:
        supplied = source.row.get(TASK_INDEX_KEY_NAME)
        return supplied if isinstance(supplied, int) and is_index(supplied) else len(self._task_of)

    def _prepared(self, source: SourceRow, task: int) -> JsonObject:
        row = dict(source.row)
        if is_materialized(row):
            self._refuse_flat_options(source)
        else:
            if self.options.overrides:
                row[RESPONSES_CREATE_PARAMS_KEY] = _merged(row.get(RESPONSES_CREATE_PARAMS_KEY), self.options.overrides)
            if self.options.skills_ref is not None:
                row[SKILLS_REF_KEY] = dict(self.options.skills_ref)
        row[TASK_INDEX_KEY_NAME] = task
        return row

    def _refuse_flat_options(self, source: SourceRow) -> None:
        given = {"responses_create_params overrides": self.options.overrides, "skills": self.options.skills_ref}
        self._refuse_of_an_episode(source, [name for name, value in given.items() if value])

    def _refuse_of_an_episode(self, source: SourceRow, options: list[str]) -> None:
        if options:
            raise InputError(f"{source.place}: {', '.join(options)} cannot be applied to a materialized episode task")

    def _repeated(self, task: _Task, target: Target, routing: Routing) -> Iterator[JsonObject]:
        number, base, source = task
        count = self._repeats.find(target.agent, routing.basis) or 0
        add_seed = bool(self._seeds.find(target.agent, routing.basis))
        if add_seed and is_materialized(base):
            self._refuse_of_an_episode(source, ["num_repeats_add_seed"])
        for _ in range(count):
            row = dict(base)
            if target.agent_ref is not None:
                row[AGENT_REF_KEY] = dict(target.agent_ref)
            index = self._rollouts.add(number)
            row[ROLLOUT_INDEX_KEY_NAME] = index
            self._ids.add(row, number, source.place)
            if target.server is not None:
                row[NG_ENVIRONMENT_SERVER_KEY] = target.server
            yield _seeded_at(source, row, index) if add_seed else row

    def _finish(self) -> None:
        if self._unrouted:
            raise InputError(
                f"no agent for: {', '.join(self._unrouted)}. Name one with +agent_name=<agent>, +agent_map={{...}}, "
                "or `agent_ref` or `task_source` in the row"
            )
        self._refuse_unrouted_tasksets()
        if self.options.task_ids is not None and self.options.task_ids - self._ids_found:
            raise InputError(f"no task has these ids: {', '.join(sorted(self.options.task_ids - self._ids_found))}")
        self._repeats.refuse_missed("num_repeats")
        self._ids.refuse_shared(self._rollouts.of)
        self._note_unused()
        if self._replaced:
            pairs = ", ".join(f"{old} -> {new}" for old, new in self._replaced)
            self.notes.append(f"agents replaced by agent_map: {pairs}")

    def _refuse_unrouted_tasksets(self) -> None:
        lines = [
            f"{place}: no environment server for taskset {taskset!r}; {how_to_route(taskset)}"
            for taskset, place in islice(self._unrouted_tasksets.items(), _LISTED)
        ]
        more = len(self._unrouted_tasksets) - len(lines)
        if lines:
            raise InputError("\n".join([*lines, *([f"and {more} more tasksets"] if more else ())]))

    def _note_unused(self) -> None:
        """Tell of keys that no row uses; a part of the tasks may well be without them."""
        if self.options.part is not None:
            return
        fanned_out = tuple(sorted(self.options.fan_out.keys() - self._fanned_out))
        for name, unused in (
            ("num_repeats", self._repeats.unused),
            ("num_repeats_add_seed", self._seeds.unused),
            ("fan_out", fanned_out),
        ):
            if unused:
                self.notes.append(f"{name} lists {', '.join(unused)}, which no row uses: a typo?")


def stored_task_id(row: JsonMapping) -> str | None:
    """Return the id by which a task is chosen: of an episode task its own, else the row's first id field."""
    task_id = row.get("task_id")
    if isinstance(task_id, Mapping):
        task_id = task_id.get("task_id")
    for value in (task_id, row.get("problem_id"), row.get("instance_id")):
        if value is not None:
            return str(value)
    return None


def _merged(block: object, overrides: JsonMapping) -> JsonObject:
    return (dict(block) if isinstance(block, Mapping) else {}) | dict(overrides)


def _seeded_at(source: SourceRow, row: JsonObject, seed: int) -> JsonObject:
    try:
        return seeded(row, seed)
    except InputError as error:
        raise InputError(f"{source.place}: {error}") from None

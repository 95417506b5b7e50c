"""The planned rows of a run, joined with the answers that are judged again.

Rules:
* The plan is the whole plan of the run whose answers are judged: what has no answer stays missing, as coverage says.
* Rollouts are taken in plan order, and a limit counts those that are done.
* An answer without a planned row, and a row that cannot be read, are refused by name before anything is sent.

Source: collection.md §1.5, §9.1.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Final

import msgspec

from rollbook.errors import InputError
from rollbook.ledger.projection import BOM
from rollbook.ledger.reader import Line, whole_lines
from rollbook.plan.targets import name_in
from rollbook.records import keys
from rollbook.records.bulk import fold_plan
from rollbook.records.codec import encode
from rollbook.records.columns import packed_key
from rollbook.records.identity import ROLLOUT_INDEX_KEY_NAME, TASK_INDEX_KEY_NAME, RolloutKey
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.nesting import not_too_deep
from rollbook.records.reading import UNREADABLE, planned_line
from rollbook.records.standing import Standings
from rollbook.records.task import Rollout
from rollbook.verbs.reverify_answers import Answers
from rollbook.verbs.reverify_payload import Judged
from rollbook.verbs.reverify_routes import Answerer, VerifyRoutes

_NAMED: Final = 5
_LINES_AT_ONCE: Final = 1000
_RAW: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ROW: Final = msgspec.json.Decoder(dict[str, object])


class _Head(msgspec.Struct, gc=False):
    task: int = msgspec.field(name=TASK_INDEX_KEY_NAME)
    rollout: int = msgspec.field(name=ROLLOUT_INDEX_KEY_NAME)
    agent_ref: Any = None
    server: Any = msgspec.field(name=keys.NG_ENVIRONMENT_SERVER_KEY, default=None)
    task_source: Any = None


_HEAD: Final = msgspec.json.Decoder(_Head)


def source_rows(path: Path, *, with_agents: bool = False) -> Iterator[JsonObject]:
    """Yield the rows of materialized inputs, their values unread.

    Raises:
        InputError: a line that is no planned row, or (`with_agents`) that names no agent; names file and line.

    """
    with path.open("rb", buffering=1 << 20) as file:
        for number, raw in enumerate(file, start=1):
            text = (raw.removeprefix(BOM) if number == 1 else raw).strip()
            if text:
                yield _read(path, number, text, with_agents=with_agents)


def _read(path: Path, number: int, text: bytes, *, with_agents: bool) -> JsonObject:
    try:
        agent = planned_line(not_too_deep(text)).agent
        row = _RAW.decode(text)
    except UNREADABLE as error:
        raise InputError(f"{path}:{number}: not a planned row: {error}") from error
    if with_agents and agent is None:
        raise InputError(
            f"{path}:{number}: the row names no agent (agent_ref.name), which a trajectory's rollout needs"
        )
    return dict(row)


def source_texts(path: Path, *, with_agents: bool = False) -> Iterator[bytes]:
    """Yield the rows of materialized inputs as lines of a plan. Raises as `source_rows` does."""
    return (encode(row) for row in source_rows(path, with_agents=with_agents))


def plan_texts(path: Path, size: int) -> Iterator[bytes]:
    """Yield the lines of the plan in force: the first `size` bytes of `path`."""
    return (text for _, _, _, text in whole_lines(path, size))


def planned_in(inputs: Path, *, with_agents: bool = False) -> Standings:
    """Return a fold of the planned rows in `inputs`.

    Raises:
        InputError: a row that is none, or is planned twice.

    """
    standings = Standings()

    def refuse(number: int, error: Exception) -> None:
        raise InputError(f"{inputs}: row {number}: {error}")

    texts = source_texts(inputs, with_agents=with_agents)
    lines = (Line(number, 0, len(text), text) for number, text in enumerate(texts, start=1))
    fold_plan(lines, standings, refuse)
    return standings


def refuse_unplanned(answers: Answers, standings: Standings, inputs: Path) -> None:
    """Refuse answers of rollouts that the plan does not hold.

    Raises:
        InputError: there are some; names the first few and the file that should hold them.

    """
    strangers = (key for key in answers if not standings.is_planned(key))
    first = list(islice(strangers, _NAMED))
    if first:
        more = sum(1 for _ in strangers)
        told = ", ".join(map(str, first)) + (f" and {more} more" if more else "")
        raise InputError(f"{inputs}: no planned row for the rollouts {told}; give the inputs that they were run with")


@dataclass(frozen=True, slots=True)
class Selected:
    """How many answers are selected; `within_limit` says which where a limit cuts them off."""

    count: int
    within_limit: frozenset[RolloutKey] | None = None


@dataclass(frozen=True, slots=True)
class JudgedPlan:
    """The answers that are owed a judging, as the fold stands; each pass reads the plan anew.

    `texts` gives the plan's lines. None comes after every so many of them: whoever goes through them may pause there.
    """

    texts: Callable[[], Iterator[bytes]]
    answers: Answers
    routes: VerifyRoutes
    is_owed: Callable[[int], bool]
    limit: int | None = None

    def __iter__(self) -> Iterator[Rollout | None]:
        """Yield what is sent."""
        for number, (key, text) in enumerate(self._selected()):
            if key is not None and self.is_owed(packed_key(key)):
                yield self._judged(key, _ROW.decode(text))
            elif number % _LINES_AT_ONCE == 0:
                yield None

    def selected(self) -> Iterator[RolloutKey]:
        """Yield the rollouts whose answers are selected, in plan order."""
        return (key for key, _ in self._selected() if key is not None)

    def routed(self) -> Selected:
        """Find a server for every answer that is selected, and return which those are.

        Raises:
            ConfigError: answers that nobody judges.

        """
        chosen: set[RolloutKey] = set()
        count = 0
        for key, text in self._selected():
            if key is not None:
                head = _HEAD.decode(text)
                self._server(key, name_in(head.agent_ref), head.server, head.task_source)
                count += 1
                if self.limit is not None:
                    chosen.add(key)
        return Selected(count, None if self.limit is None else frozenset(chosen))

    def _selected(self) -> Iterator[tuple[RolloutKey | None, bytes]]:
        """Yield the lines of the plan, the key where the answer is to be judged."""
        left = -1 if self.limit is None else self.limit
        for text in self.texts():
            if left == 0:
                return
            head = _HEAD.decode(text)
            key = RolloutKey(head.task, head.rollout)
            held = self.answers.holds(key)
            left -= held
            yield (key if held else None), text

    def _judged(self, key: RolloutKey, row: JsonMapping) -> Rollout:
        named = (row.get(keys.NG_ENVIRONMENT_SERVER_KEY), row.get(keys.TASK_SOURCE_KEY))
        server = self._server(key, name_in(row.get(keys.AGENT_REF_KEY)), *named)
        return Judged(key, row, self.answers.of(key), self.answers.links(key)).sent_to(server)

    def _server(self, key: RolloutKey, agent: str | None, environment: object, source: object) -> str:
        answered_by, ran_on = self.answers.who(key)
        stamped = environment if isinstance(environment, str) else ran_on
        who = Answerer(source if isinstance(source, str) else None, stamped, agent or answered_by)
        return self.routes.server_for(who)

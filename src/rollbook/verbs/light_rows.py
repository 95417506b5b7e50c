"""The results that stand, by server and without their bulk, as request bodies that lie on disk.

Rules:
* Results are as many as they are: of one, the fold knows where it lies, and nothing more is kept of it.
* Rows stand in (task, rollout) order; of a rollout, the one that stands. Rollouts that count as zero stand among them,
  those that are in no plan, though there is one, do not.
* The bodies are files without a name, which end with whoever holds them.

Source: collection.md §6.1, §6.3, §6.5, §19.
"""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from heapq import merge
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import plain_lines
from rollbook.records.codec import File
from rollbook.records.columns import PLANNED
from rollbook.records.disposition import DEFAULT_RULES, Rules
from rollbook.records.outcome import Result
from rollbook.records.place import Place
from rollbook.records.reading import UNREADABLE, read_row
from rollbook.records.record import Record
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW
from rollbook.scoring.imputation import NOTHING_COUNTED, Counting, added
from rollbook.scoring.streamed_shape import light_fields
from rollbook.verbs.added_rows import AddedAt, AddedRows
from rollbook.verbs.placed_rows import PlacedRows

_AT_ONCE: Final = 1 << 18
_BEGIN: Final = b'{"verify_responses":['
_END: Final = b"]}"
_TOP: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])

NO_NAME: Final = "(no agent)"
"""What rows are grouped under that name neither a server nor an agent."""

Serving = Callable[[str | None, str | None], str | None]
"""The environment server of a row, by the agent and the server that it names; None where there is none."""


class BodyFile:
    """A body on disk, one row a line; `size` in bytes."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self.size = size

    def pieces(self) -> Iterator[bytes]:
        """Yield it from its beginning."""
        self._file.seek(0)
        while piece := self._file.read(_AT_ONCE):
            yield piece

    def rows(self) -> Iterator[bytes]:
        """Yield its rows."""
        self._file.seek(len(_BEGIN))
        for line in self._file:
            row = line.removesuffix(b",\n") if line.endswith(b"\n") else line.removesuffix(_END)
            if row:
                yield row


class ServerResults(msgspec.Struct, frozen=True):
    """The rows that one environment server produced: how many, whose agents, and the body that holds them.

    `server` names the group: the agent where no server is known, and then nobody `is_served`. `added` of the rows stand
    for rollouts without a result.
    """

    server: str
    rows: int
    agents: tuple[str, ...]
    body: BodyFile
    is_served: bool = True
    added: int = 0


class Chosen(msgspec.Struct, frozen=True):
    """What counts as zero, and by which rules rollouts stand."""

    counting: Counting = NOTHING_COUNTED
    rules: Rules = DEFAULT_RULES


NOTHING_CHOSEN: Final = Chosen()


def _never() -> bool:
    return False


def named_group(serving: Serving, agent: str | None, server: str | None) -> tuple[str, bool]:
    """Return what the group of a row is called, and whether a server stands behind that name."""
    served = serving(agent, server)
    return served or agent or NO_NAME, served is not None


def stamped(agent: str | None, server: str | None) -> str | None:  # noqa: ARG001  the agent is for those that look it up
    """Return the server that a row names."""
    return server


def results_by_server(
    paths: RunPaths,
    standings: Standings,
    holding: ExitStack,
    is_over: Callable[[], bool] = _never,
    *,
    serving: Serving = stamped,
    chosen: Chosen = NOTHING_CHOSEN,
) -> tuple[ServerResults, ...]:
    """Return the results that stand, grouped by the server that produced them; `holding` closes their bodies.

    Where the lines of this session lie is noted in `standings`. Once it `is_over`, the rest is left out.

    Raises:
        OSError: the results cannot be read, or the disk does not take the bodies.

    """
    _note_places(paths, standings, is_over)
    plus = AddedRows(paths, lambda: added(standings, chosen.counting, chosen.rules), holding)
    bodies = _Bodies(paths, serving, holding)
    placed = _placed(standings)
    if len(plus):
        for at in placed:
            if is_over():
                break
            bodies.look_at(at)
    every: Iterable[ResultAt | AddedAt] = merge(_placed(standings), plus, key=_key) if len(plus) else placed
    for one in every:
        if is_over():
            break
        if isinstance(one, AddedAt):
            bodies.add_zero(one, plus)
        else:
            bodies.add(one)
    return bodies.ended()


def _key(at: "ResultAt | AddedAt") -> int:
    return at.key


class ResultAt(NamedTuple):
    """A result that stands: its rollout, whose it is, and where it lies."""

    key: int
    agent: str | None
    server: str | None
    offset: int
    length: int


def _placed(standings: Standings) -> Iterator[ResultAt]:
    table, rows, flags = standings.table, standings.columns.row, standings.columns.flags
    every = not any(flags)
    for key, seat in standings.in_order():
        row = rows[seat]
        is_counted = row != NO_ROW and (every or flags[seat] & PLANNED)
        place = table.place(row) if is_counted else None
        if place is not None and place.file is File.RESULTS:
            _, agent, server = table.sources[table.origins[row]]
            yield ResultAt(key, agent, server, place.offset, place.length)


def _note_places(paths: RunPaths, standings: Standings, is_over: Callable[[], bool]) -> None:
    """Note where each line lies that stands and that this session wrote; a damaged line is passed over."""
    for file, path in ((File.RESULTS, paths.output), (File.FAILURES, paths.failures)):
        for number, offset, length, text in plain_lines(path):
            if is_over():
                return
            try:
                record = read_row(text, file)
            except UNREADABLE:
                continue
            stands = standings.of(record.key)
            if stands is not None and stands.place is None and _is_it(stands, record, file):
                standings.lies_at(record.key, Place(file, offset, length, number))


def _is_it(stands: Record, record: Record, file: File) -> bool:
    """Whether `record`, read from `file`, is the one that stands and of which no place is known yet."""
    is_result = isinstance(stands.outcome, Result)
    named = (record.run_id, record.attempt)
    return is_result is (file is File.RESULTS) and named == (stands.run_id, stands.attempt)


class _Bodies:
    """The bodies that are being written, of the results of one run."""

    def __init__(self, paths: RunPaths, serving: Serving, holding: ExitStack) -> None:
        self._folder = paths.output.parent
        self._serving = serving
        self._holding = holding
        self._lines = PlacedRows(paths.output) if paths.output.exists() else None
        if self._lines is not None:
            holding.callback(self._lines.close)
        self._groups: dict[tuple[str | None, str | None], _Body] = {}
        self._bodies: dict[str, _Body] = {}

    def _body(self, agent: str | None, server: str | None) -> "_Body":
        body = self._groups.get((agent, server))
        if body is None:
            name, is_served = named_group(self._serving, agent, server)
            if name not in self._bodies:
                self._bodies[name] = _Body(self._folder, self._holding, is_served=is_served)
            body = self._groups[agent, server] = self._bodies[name]
            if agent is not None:
                body.agents.add(agent)
        return body

    def _line(self, at: ResultAt) -> bytes:
        return b"" if self._lines is None else self._lines.at(at.offset, at.length)

    def look_at(self, at: ResultAt) -> None:
        """Note which keys a row carries."""
        self._body(at.agent, at.server).carried.update(_TOP.decode(self._line(at)))

    def add(self, at: ResultAt) -> None:
        """Write a result's row."""
        self._body(at.agent, at.server).add(light_row(self._line(at)))

    def add_zero(self, at: AddedAt, plus: AddedRows) -> None:
        """Write the row of a rollout that counts as zero."""
        body = self._body(at.one.agent, at.one.server)
        body.add(light_row(plus.row(at, body.carried)))
        body.added += 1

    def ended(self) -> tuple[ServerResults, ...]:
        """Return the bodies, which are whole now."""
        return tuple(
            ServerResults(name, body.rows, tuple(sorted(body.agents)), body.ended(), body.is_served, body.added)
            for name, body in sorted(self._bodies.items())
        )


class BodyWriter:
    """A body that is being written, in a file without a name in `folder`."""

    def __init__(self, folder: Path, holding: ExitStack) -> None:
        self._file = holding.enter_context(tempfile.TemporaryFile(dir=folder))  # noqa: SIM115  `holding` closes it
        self._file.write(_BEGIN)
        self.rows = 0

    def add(self, row: bytes) -> None:
        """Write a row."""
        self._file.write((b",\n" if self.rows else b"") + row)
        self.rows += 1

    def ended(self) -> BodyFile:
        """Return the body, which is whole now."""
        self._file.write(_END)
        self._file.flush()
        return BodyFile(self._file, self._file.tell())


class _Body(BodyWriter):
    """The body of one server of this run: whose rows it holds, and which keys they carry."""

    def __init__(self, folder: Path, holding: ExitStack, *, is_served: bool) -> None:
        super().__init__(folder, holding)
        self.is_served = is_served
        self.agents: set[str] = set()
        self.carried: set[str] = set()
        self.added = 0


def light_row(line: bytes) -> bytes:
    """Return a result's row without its bulk; of the response only usage and the reason of an early end stay.

    The row was read before, so that its depth is known.
    """
    return msgspec.json.encode(light_fields(_TOP.decode(line)))


def labels_of(groups: Iterable[ServerResults]) -> dict[str, str]:
    """Return what each server's entry is called: its agent where no other server has that agent, else the server."""
    return labels((group.server, group.agents) for group in groups)


def labels(groups: Iterable[tuple[str, tuple[str, ...]]]) -> dict[str, str]:
    """Return the same of servers and the agents whose rows each produced."""
    agents = dict(groups)
    having = defaultdict[str, int](int)
    for agent in (agent for of_server in agents.values() for agent in of_server):
        having[agent] += 1
    wanted = {server: _only(of_server, having) or server for server, of_server in agents.items()}
    names = list(wanted.values())
    return {server: name if names.count(name) == 1 else server for server, name in wanted.items()}


def _only(agents: tuple[str, ...], having: dict[str, int]) -> str | None:
    """Return the one agent of a server, where no other server has it."""
    return agents[0] if len(agents) == 1 and having[agents[0]] == 1 else None

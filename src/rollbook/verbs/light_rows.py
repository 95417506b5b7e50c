"""The results that stand, by server and without their bulk, as request bodies that lie on disk.

Rules:
* Results are as many as they are: of one, the fold knows where it lies, and nothing more is kept of it.
* Rows stand in (task, rollout) order; of a rollout, the one that stands.
* The bodies are files without a name, which end with whoever holds them.

Source: collection.md §6.1, §6.3, §19.
"""

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from rollbook.ledger.paths import RunPaths
from rollbook.ledger.projection import BOM
from rollbook.ledger.reader import plain_lines
from rollbook.records.codec import File
from rollbook.records.keys import BULKY_KEYS, RESPONSE_KEY
from rollbook.records.outcome import Result
from rollbook.records.place import Place
from rollbook.records.reading import UNREADABLE, read_row
from rollbook.records.record import Record
from rollbook.records.standing import Standings

_AT_ONCE: Final = 1 << 18
_BEGIN: Final = b'{"verify_responses":['
_END: Final = b"]}"
_NULL: Final = b"null"
_OBJECT: Final = ord("{")
_TOP: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_KEPT_OF_RESPONSE: Final = ("usage", "incomplete_details")


class BodyFile:
    """A body on disk; `size` in bytes."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self.size = size

    def pieces(self) -> Iterator[bytes]:
        """Yield it from its beginning."""
        self._file.seek(0)
        while piece := self._file.read(_AT_ONCE):
            yield piece


@dataclass(frozen=True, slots=True)
class ServerResults:
    """The rows that one environment server produced: how many, whose agents, and the body that holds them."""

    server: str
    rows: int
    agents: tuple[str, ...]
    body: BodyFile


def _never() -> bool:
    return False


def results_by_server(
    paths: RunPaths, standings: Standings, holding: ExitStack, is_over: Callable[[], bool] = _never
) -> tuple[ServerResults, ...]:
    """Return the results that stand, grouped by the server that produced them; `holding` closes their bodies.

    Where the rows of this session lie is noted in `standings`. Once it `is_over`, the rest is left out.

    Raises:
        OSError: the results cannot be read, or the disk does not take the bodies.

    """
    agents = _agents(paths, standings, is_over)
    bodies: dict[str, _Body] = {}
    for name, place in standings.places(standings.in_order()):
        if is_over():
            break
        if place.file is File.RESULTS:
            server = name or str(None)
            body = bodies.get(server)
            if body is None:
                body = bodies[server] = _Body(paths.output, holding)
            body.add(place)
    return tuple(
        ServerResults(server, body.rows, tuple(sorted(agents[server])), body.ended())
        for server, body in sorted(bodies.items())
    )


def _agents(paths: RunPaths, standings: Standings, is_over: Callable[[], bool]) -> defaultdict[str, set[str]]:
    """Return whose results each server produced, and note where each lies; a damaged line is passed over."""
    agents: defaultdict[str, set[str]] = defaultdict(set)
    for number, offset, length, text in plain_lines(paths.output):
        if is_over():
            break
        try:
            record = read_row(text, File.RESULTS)
        except UNREADABLE:
            continue
        stands = standings.of(record.key)
        if stands is None or not _lies_at(stands, record, number):
            continue
        if record.agent is not None:
            agents[record.server or str(None)].add(record.agent)
        if stands.place is None:
            standings.lies_at(record.key, Place(File.RESULTS, offset, length, number))
    return agents


def _lies_at(stands: Record, record: Record, number: int) -> bool:
    """Whether line `number` of the results, which holds `record`, is the one that stands.

    What this session wrote has no place yet: its attempt tells. A row that names no run may have been given another
    attempt number by the fold than the one in the file: its place tells.
    """
    if stands.place is not None:
        return stands.place.file is File.RESULTS and stands.place.line == number
    named = (record.run_id, record.attempt)
    return isinstance(stands.outcome, Result) and named == (stands.run_id, stands.attempt)


class _Body:
    """A body that is being written, of rows of the file `results`."""

    def __init__(self, results: Path, holding: ExitStack) -> None:
        self._lines = holding.enter_context(results.open("rb"))
        self._file = holding.enter_context(tempfile.TemporaryFile(dir=results.parent))  # noqa: SIM115  `holding` closes it
        self._file.write(_BEGIN)
        self.rows = 0

    def add(self, place: Place) -> None:
        """Write the row that lies at `place`."""
        self._lines.seek(place.offset)
        line = self._lines.read(place.length)
        self._file.write((b"," if self.rows else b"") + light_row(line if place.offset else line.removeprefix(BOM)))
        self.rows += 1

    def ended(self) -> BodyFile:
        """Return the body, which is whole now."""
        self._file.write(_END)
        self._file.flush()
        return BodyFile(self._file, self._file.tell())


def light_row(line: bytes) -> bytes:
    """Return a result's row without its bulk; of the response only usage and the reason of an early end stay.

    The row was read before, so that its depth is known.
    """
    row = _TOP.decode(line)
    light = {key: value for key, value in row.items() if key not in BULKY_KEYS}
    response = row.get(RESPONSE_KEY)
    if response is not None and memoryview(response)[0] == _OBJECT:
        light |= _of_response(_TOP.decode(response))
    return msgspec.json.encode(light)


def _of_response(response: dict[str, msgspec.Raw]) -> dict[str, msgspec.Raw]:
    told = [key for key in _KEPT_OF_RESPONSE if bytes(response.get(key, _NULL)) != _NULL]
    kept = {key: response[key] for key in told}
    return {RESPONSE_KEY: msgspec.Raw(msgspec.json.encode(kept))} if kept else {}


def labels_of(groups: Iterable[ServerResults]) -> dict[str, str]:
    """Return what each server's entry is called: its agent where no other server has that agent, else the server."""
    wanted = {group.server: group.agents[0] if len(group.agents) == 1 else group.server for group in groups}
    names = list(wanted.values())
    return {server: name if names.count(name) == 1 else server for server, name in wanted.items()}

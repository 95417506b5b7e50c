"""The results that stand, by server and without their bulk, as request bodies that lie on disk.

Rules:
* Results are as many as they are: what is kept of one in memory is where it lies.
* Rows stand in (task, rollout) order; of a rollout, the one that stands.
* The bodies are files without a name, which end with whoever holds them.

Source: collection.md §6.1, §6.3, §19.
"""

import tempfile
from array import array
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Final

import msgspec

from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import plain_lines
from rollbook.records.codec import File
from rollbook.records.columns import packed_key
from rollbook.records.keys import BULKY_KEYS, RESPONSE_KEY
from rollbook.records.nesting import not_too_deep
from rollbook.records.outcome import Result
from rollbook.records.reading import UNREADABLE, read_row
from rollbook.records.record import Record
from rollbook.records.standing import Standings

_AT_ONCE: Final = 1 << 18
_BEGIN: Final = b'{"verify_responses":['
_END: Final = b"]}"
_NULL: Final = b"null"
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


@dataclass(slots=True)
class _Found:
    """Where the rows of one server lie."""

    agents: set[str] = field(default_factory=set)
    keys: "array[int]" = field(default_factory=lambda: array("Q"))
    offsets: "array[int]" = field(default_factory=lambda: array("Q"))
    lengths: "array[int]" = field(default_factory=lambda: array("Q"))

    def in_order(self) -> Iterator[tuple[int, int]]:
        """Yield where each rollout's last row lies."""
        order = sorted(range(len(self.keys)), key=self.keys.__getitem__)
        for at, place in enumerate(order):
            if at + 1 == len(order) or self.keys[order[at + 1]] != self.keys[place]:
                yield self.offsets[place], self.lengths[place]


def results_by_server(paths: RunPaths, standings: Standings, holding: ExitStack) -> tuple[ServerResults, ...]:
    """Return the results that stand, grouped by the server that produced them; `holding` closes their bodies."""
    found: dict[str, _Found] = {}
    for record, offset, length in _standing(paths, standings):
        of_server = found.setdefault(record.server or str(None), _Found())
        if record.agent is not None:
            of_server.agents.add(record.agent)
        of_server.keys.append(packed_key(record.key))
        of_server.offsets.append(offset)
        of_server.lengths.append(length)
    return tuple(_written(paths.output, server, held, holding) for server, held in sorted(found.items()))


def _standing(paths: RunPaths, standings: Standings) -> Iterator[tuple[Record, int, int]]:
    """Yield what stands, and where it lies; who let damaged lines pass, goes on without."""
    for number, offset, length, text in plain_lines(paths.output):
        try:
            record = read_row(text, File.RESULTS)
        except UNREADABLE:
            continue
        stands = standings.of(record.key)
        if stands is not None and _lies_at(stands, record, number):
            yield record, offset, length


def _lies_at(stands: Record, record: Record, number: int) -> bool:
    """Whether line `number` of the results, which holds `record`, is the one that stands.

    What this session wrote has no place yet: its attempt tells. A row that names no run may have been given another
    attempt number by the fold than the one in the file: its place tells.
    """
    if stands.place is not None:
        return stands.place.file is File.RESULTS and stands.place.line == number
    named = (record.run_id, record.attempt)
    return isinstance(stands.outcome, Result) and named == (stands.run_id, stands.attempt)


def _written(results: Path, server: str, found: _Found, holding: ExitStack) -> ServerResults:
    body = holding.enter_context(tempfile.TemporaryFile(dir=results.parent))  # noqa: SIM115  `holding` closes it
    rows = 0
    with results.open("rb") as lines:
        body.write(_BEGIN)
        for offset, length in found.in_order():
            lines.seek(offset)
            body.write((b"," if rows else b"") + light_row(lines.read(length)))
            rows += 1
        body.write(_END)
    body.flush()
    return ServerResults(server, rows, tuple(sorted(found.agents)), BodyFile(body, body.tell()))


def light_row(line: bytes) -> bytes:
    """Return a result's row without its bulk; of the response only usage and the reason of an early end stay."""
    row = _TOP.decode(line)
    light = {key: value for key, value in row.items() if key not in BULKY_KEYS}
    response = bytes(row.get(RESPONSE_KEY, _NULL))
    if response[:1] == b"{":
        light |= _of_response(_TOP.decode(not_too_deep(response)))
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

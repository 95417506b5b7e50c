"""What the files of a run say that cannot all be true: records of other runs, numbers nobody handed out, and so on.

Rules:
* Each is told once, by the file and line where it shows first, and with how many more there are.
* Nothing is mended here; what to do with it is the caller's business.
* A run hands out a number for one execution: two results of it that differ contradict each other. Rows that name no run
  may be of any collector: that the later one counts of two is told, and is no damage.

Source: collection.md §5.4, §5.4.1, §20 (11); cases RC-13, RC-20.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from rollbook.errors import LedgerError
from rollbook.ledger.manifest_store import LogSummary
from rollbook.ledger.paths import RunPaths
from rollbook.records.columns import PLANNED, unpacked_key
from rollbook.records.identity import RolloutKey
from rollbook.records.manifest import RunManifest
from rollbook.records.place import File, Place
from rollbook.records.standing import Standings
from rollbook.records.table import NO_ROW

_NAMED_EACH: Final = 20
_ANYWAY: Final = "with +allow_unsafe_resume=true"


def contradictions(
    paths: RunPaths, manifest: RunManifest | None, log: LogSummary, standings: Standings
) -> Iterator[LedgerError]:
    """Yield what contradicts the manifest, or, where there is none, what one would have said."""
    if manifest is None:
        yield from _without_manifest(paths, log, standings)
    else:
        if not manifest.merged:
            yield from _of_other_runs(paths, manifest.run_id, standings)
        yield from _never_handed_out(paths, standings, manifest.unreserved)
    yield from _disputed(paths, standings)


def unplanned(paths: RunPaths, standings: Standings) -> Iterator[LedgerError]:
    """Yield one error when rollouts left a record or a number and are in no plan."""
    columns = standings.columns
    strangers = (
        (number, row)
        for number, row, flags in zip(columns.seats, columns.row, columns.flags, strict=True)
        if not flags & PLANNED
    )
    first = next(strangers, None)
    if first is not None:
        number, row = first
        place = str(paths.manifest_log) if row == NO_ROW else placed(paths, standings.table.place(row))
        yield LedgerError(
            f"{place}: rollout {unpacked_key(number)} is not in the plan {paths.materialized_inputs.name}"
            f"{_more(sum(1 for _ in strangers), 'rollout')}; restore the files that belong together"
        )


def told_of_doubles(paths: RunPaths, standings: Standings) -> Iterator[str]:
    """Yield what is told of results that are there several times and contradict nothing."""
    doubles = standings.doubles
    unnamed = [seat for seat in doubles.disputed if not _names_run(standings, seat)]
    if unnamed:
        where, rollout, before = _double(paths, standings, min(unnamed))
        yield (
            f"{where}: rollout {rollout} has another result than at {before}, and the lines name no run"
            f"{_more(len(unnamed) - 1, 'rollout')}; the later line of each counts: where that is wrong, keep the other"
        )
    alike = doubles.pairs.keys() - doubles.disputed
    if alike:
        where, rollout, before = _double(paths, standings, min(alike))
        yield (
            f"{where}: the result of rollout {rollout} is there already, at {before}"
            f"{_more(len(alike) - 1, 'rollout')}; each counts once"
        )


def _disputed(paths: RunPaths, standings: Standings) -> Iterator[LedgerError]:
    """Yield one error when an attempt of a run has results that differ."""
    named = [seat for seat in standings.doubles.disputed if _names_run(standings, seat)]
    if named:
        where, rollout, before = _double(paths, standings, min(named))
        attempt = standings.table.attempt(standings.doubles.pairs[min(named)][1])
        yield LedgerError(
            f"{where}: attempt {attempt} of rollout {rollout} has another result than at {before}"
            f"{_more(len(named) - 1, 'rollout')}; restore the file. As it is, the later line counts, and a resume goes "
            f"on {_ANYWAY}"
        )


def _names_run(standings: Standings, seat: int) -> bool:
    """Whether both rows of the double at `seat` name a run."""
    return all(standings.table.run_id(row) is not None for row in standings.doubles.pairs[seat])


def _double(paths: RunPaths, standings: Standings, seat: int) -> tuple[str, RolloutKey, str]:
    """Return where the later row of the double at `seat` is, its rollout, and where the earlier one is."""
    earlier, later = standings.doubles.pairs[seat]
    rollout = unpacked_key(standings.columns.seats.keys[seat])
    return placed(paths, standings.table.place(later)), rollout, placed(paths, standings.table.place(earlier))


def placed(paths: RunPaths, place: Place | None) -> str:
    """Return `place` as `file:line`."""
    if place is None:
        return str(paths.output)
    path = paths.output if place.file is File.RESULTS else paths.failures
    return f"{path}:{place.line}"


def manifest_gone(paths: RunPaths, log: LogSummary) -> Iterator[LedgerError]:
    """Yield an error when the log tells of sessions and no manifest is there: a writer leaves both."""
    if log.sessions and not paths.manifest.exists():
        yield LedgerError(
            f"{paths.manifest}: the manifest is gone, and {paths.manifest_log.name} tells of a run that had one; "
            f"restore it, or go on without it {_ANYWAY}"
        )


def _without_manifest(paths: RunPaths, log: LogSummary, standings: Standings) -> Iterator[LedgerError]:
    run_ids = standings.table.run_ids()
    names = sorted({name for name in (log.run_id, *run_ids) if name is not None})
    if len(names) > 1:
        _, place = _first_of(standings, names[1:] if log.run_id is None else set(names) - {log.run_id})
        yield LedgerError(
            f"{placed(paths, place)}: records of {len(names)} runs ({', '.join(names[:_NAMED_EACH])}) lie together, "
            "and no manifest says which of them this is; restore the files that belong together"
        )


def _of_other_runs(paths: RunPaths, mine: str, standings: Standings) -> Iterator[LedgerError]:
    run_ids: Counter[str | None] = standings.table.run_ids()
    others = sorted(name for name in run_ids if name is not None and name != mine)
    if others:
        name, place = _first_of(standings, others)
        more = _more(sum(run_ids[other] for other in others) - 1, "record")
        named = "" if others == [name] else f" ({', '.join(others[:_NAMED_EACH])})"
        yield LedgerError(
            f"{placed(paths, place)}: a record of another run, {name}, than {mine} of {paths.manifest.name}{more}"
            f"{named}; restore the files that belong together"
        )


def _first_of(standings: Standings, names: Iterable[str]) -> tuple[str | None, Place | None]:
    """Return which of the runs `names` the first record of one of them names, and where that record is."""
    table, wanted = standings.table, set(names)
    row = next(row for row in range(len(table)) if table.run_id(row) in wanted)
    return table.run_id(row), table.place(row)


def _never_handed_out(paths: RunPaths, standings: Standings, known: int) -> Iterator[LedgerError]:
    """Yield one error when more records than the `known` ones are of attempts of which the log does not tell."""
    count, first = standings.unreserved - known, standings.first_unreserved
    if count > 0 and first is not None:
        yield LedgerError(
            f"{placed(paths, first.place)}: attempt {first.attempt} of rollout {first.key} was never handed out by "
            f"{paths.manifest_log.name}{_more(count - 1, 'record')}: the log lost lines. Restore it; to go on without "
            f"it, resume {_ANYWAY}"
        )


def _more(count: int, what: str) -> str:
    return f", and {count} more {what}{'s' if count > 1 else ''} like it" if count > 0 else ""

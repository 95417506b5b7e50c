"""Rows that a caller holds → what is sent of each, with everything that could keep it from being sent told first.

Rules:
* Rows are never changed: what is stamped is a copy of the row's top, and so is what is handed back; what lies below is
  the caller's own objects. What is sent and recorded is the row as it was at the call.
* All rows are looked at before any is sent; one error lists every row at fault.
* A row need not name a rollout to be sent. What is typed, enriched or recorded has to: it is told by its name.

Source: collection.md §2.9, §2.11, §11.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import uuid4

from rollbook.api.direct_addresses import addressed
from rollbook.api.direct_errors import DirectCallError
from rollbook.errors import InputError
from rollbook.inputs.examples import rows_of
from rollbook.inputs.row_names import faults_in_routing
from rollbook.outcomes.classify import request_body
from rollbook.plan.directory import Directory
from rollbook.plan.rollouts import numbered, rollout_of
from rollbook.records.codec import encode
from rollbook.records.identity import (
    ATTEMPT_INDEX_KEY_NAME,
    ROLLOUT_INDEX_KEY_NAME,
    RUN_ID_KEY,
    TASK_INDEX_KEY_NAME,
    is_index,
    logical_rollout_id,
)
from rollbook.records.json_values import JsonMapping, JsonObject
from rollbook.records.source import is_materialized
from rollbook.records.task import Rollout


@dataclass(frozen=True, slots=True)
class DirectRow:
    """A row as it is handed back, and what is sent of it. What `row` holds below its top is the caller's own.

    `body` is what is posted; `rollout_id` and `run_id` name the attempt where the row does. `rollout` says where it
    goes; its key is the row's place in the call where the row has no numbers of its own.
    """

    row: JsonObject
    rollout: Rollout
    body: bytes
    attempt: int = 0
    rollout_id: str | None = None
    run_id: str | None = None

    @property
    def name(self) -> str:
        """What messages call it."""
        return self.rollout_id or f"row {self.rollout.key.task}"


@dataclass(frozen=True, slots=True)
class RunNaming:
    """Which run rows are of: `given` overrides what a row says, `otherwise` is for rows that say nothing."""

    otherwise: str
    given: str | None = None

    @classmethod
    def of_call(cls, given: str | None = None) -> "RunNaming":
        """Return the naming of one call, with an id of its own.

        Raises:
            DirectCallError: `given` is empty, or no text.

        """
        if given is not None and not (isinstance(given, str) and given):
            raise DirectCallError(f"run_id must be text, or None for a new one; found {given!r}")
        return cls(uuid4().hex, given)

    def name_in(self, row: JsonMapping) -> str:
        """Return the run that `row` is of."""
        own = row.get(RUN_ID_KEY)
        return self.given or (own if isinstance(own, str) and own else self.otherwise)


def direct_rows(
    examples: Iterable[JsonMapping],
    directory: Directory,
    *,
    server: str | None = None,
    run: RunNaming | None = None,
    all_named: bool = False,
) -> list[DirectRow]:
    """Return what is sent of each of `examples`.

    `server` sends all of them to that environment server. With `run`, rows that name a rollout name their run too;
    `all_named` refuses rows that name no rollout.

    Raises:
        InputError: rows that are no JSON, that lead nowhere, or whose names are none; all of them.

    """
    rows = [source.row for source in rows_of(examples)]
    ids = _rollout_ids(rows, all_named=all_named)
    resolved = list(directory.resolved(addressed(rows, directory, server)))
    return [_direct_row(n, *pair, directory, run) for n, pair in enumerate(zip(resolved, ids, strict=True))]


def _rollout_ids(rows: Iterable[JsonMapping], *, all_named: bool) -> list[str | None]:
    found: list[str | None] = []
    faults: list[str] = []
    for number, row in enumerate(rows):
        faults += [f"row {number}: {fault}" for fault in (*faults_in_routing(row), *_faults_in_attempt(row))]
        try:
            found.append(logical_rollout_id(row))
        except InputError as error:
            faults.append(f"row {number}: {error}")
            continue
        if found[-1] is None and (all_named or is_materialized(row)):
            faults.append(
                f"row {number}: it names no rollout; give it a `_ng_rollout_id`, or rows of preprocess_examples"
            )
    if faults:
        raise InputError("\n".join(faults))
    return found


def _faults_in_attempt(row: JsonMapping) -> Iterator[str]:
    """Tell of an episode task whose attempt could not be told from another one by its number."""
    attempt = row.get(ATTEMPT_INDEX_KEY_NAME)
    if attempt is not None and not is_index(attempt) and is_materialized(row):
        yield f"`{ATTEMPT_INDEX_KEY_NAME}` must be a whole number from 0 on; found {attempt!r}"


def _direct_row(
    number: int, row: JsonObject, rollout_id: str | None, directory: Directory, run: RunNaming | None
) -> DirectRow:
    run_id = run.name_in(row) if run is not None and rollout_id is not None else None
    sent = row | ({RUN_ID_KEY: run_id} if run_id is not None else {})
    placed = _placed(sent, number)
    rollout = rollout_of(encode(placed), directory.find)
    attempt = sent.get(ATTEMPT_INDEX_KEY_NAME)
    tries = attempt if isinstance(attempt, int) and is_index(attempt) else 0
    if tries:
        rollout = numbered(rollout, tries)
    body = request_body(rollout) if rollout.is_episode or placed is sent else encode(sent)
    return DirectRow(sent, rollout, body, tries, rollout_id, run_id)


def _placed(row: JsonObject, number: int) -> JsonObject:
    """Return `row` with the numbers that a plan would have given it, where it has none of its own."""
    if is_index(row.get(TASK_INDEX_KEY_NAME)) and is_index(row.get(ROLLOUT_INDEX_KEY_NAME)):
        return row
    return row | {TASK_INDEX_KEY_NAME: number, ROLLOUT_INDEX_KEY_NAME: 0}

"""What the fields of some tasks of a run say, read once more from its plan.

Rules:
* Only tasks that cannot be told apart by their prompt are asked for, so of most runs nothing is read again.
* A line that cannot be read was told when the run was folded, and is passed over here.
"""

from collections.abc import Iterable
from pathlib import Path

import msgspec

from rollbook.compare.lookalikes import TaskFields
from rollbook.compare.side import Side, short
from rollbook.errors import LedgerError
from rollbook.ledger.history import planned_lines
from rollbook.ledger.manifest_store import read_manifest
from rollbook.ledger.paths import RunPaths
from rollbook.records.identity import TASK_INDEX_KEY_NAME
from rollbook.records.manifest import RunManifest
from rollbook.records.nesting import not_too_deep
from rollbook.records.reading import UNREADABLE
from rollbook.records.task_content import other_fields


class _Head(msgspec.Struct):
    task: int = msgspec.field(name=TASK_INDEX_KEY_NAME)


_HEAD = msgspec.json.Decoder(_Head)
_ROW = msgspec.json.Decoder(dict[str, object])


def fields_of(side: Side, tasks: Iterable[int]) -> TaskFields:
    """Return what the fields of `tasks` say, the first line of each in the plan of the side's run."""
    left = set(tasks)
    fields = TaskFields(left)
    output = Path(side.label)
    paths = RunPaths(output.resolve() if output.is_symlink() else output)
    for line in planned_lines(paths, _manifest(paths)) if paths.materialized_inputs.exists() else ():
        try:
            task = _HEAD.decode(line.text).task
            if task in left:
                for name, digest in other_fields(_ROW.decode(not_too_deep(line.text))):
                    fields.say(task, name, short(digest))
                left.discard(task)
        except UNREADABLE:
            continue
    return fields


def _manifest(paths: RunPaths) -> RunManifest | None:
    try:
        return read_manifest(paths.manifest)
    except LedgerError:
        return None

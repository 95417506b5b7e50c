"""What must hold after every death: pure functions over the run's files and the witness's log.

Rules:
* A claim returns its violations as sentences; none means that it holds.
* Files are read as bytes; a line counts once its newline is there.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from crash.script import reward_of

Key = tuple[int, int]
Attempt = tuple[int, int, int]
Files = Mapping[str, bytes]

RESULTS, FAILURES, PLAN, LOG, MANIFEST, METRICS = (
    "r.jsonl",
    "r_failures.jsonl",
    "r_materialized_inputs.jsonl",
    "r_manifest.log",
    "r_manifest.json",
    "r_aggregate_metrics.json",
)
APPENDED = (RESULTS, FAILURES, LOG)
WHOLE = (MANIFEST, METRICS)


def files_in(folder: Path) -> dict[str, bytes]:
    """Return every file of a run folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} if folder.exists() else {}


def complete(data: bytes) -> bytes:
    """Return `data` up to its last newline."""
    return data[: data.rfind(b"\n") + 1]


def rows_of(files: Files, name: str) -> list[dict]:
    """Return the complete rows of a file."""
    return [json.loads(line) for line in complete(files.get(name, b"")).split(b"\n") if line.strip()]


def key_of(row: Mapping) -> Key:
    return row["_ng_task_index"], row["_ng_rollout_index"]


def attempt_of(row: Mapping) -> Attempt:
    return (*key_of(row), row.get("_ng_attempt_index") or 0)


@dataclass(frozen=True)
class Witness:
    """What the server of a run saw: requests in order, what it scored and replied to the end, and signals that fell."""

    requests: Sequence[Attempt]
    scored: frozenset[Attempt] = frozenset()
    replied: frozenset[Attempt] = frozenset()
    signals: Sequence[int] = ()

    @classmethod
    def of_log(cls, log: bytes) -> "Witness":
        """Read a server's log."""
        events = [json.loads(line) for line in complete(log).splitlines()]
        return cls(
            requests=[_who(event) for event in events if event["e"] == "request"],
            scored=frozenset(_who(event) for event in events if event["e"] == "scored"),
            replied=frozenset(_who(event) for event in events if event["e"] == "replied" and event["scored"]),
            signals=[event["signal"] for event in events if event["e"] == "signal"],
        )

    def asked(self) -> Counter[Key]:
        """Return how many requests each rollout took."""
        return Counter((task, rollout) for task, rollout, _ in self.requests)


def _who(event: Mapping) -> Attempt:
    task, rollout, attempt = event["who"]
    return task, rollout, attempt


def only_appended(before: Files, after: Files, *, sent: bool) -> Iterator[str]:
    """Old bytes stay: complete lines where they were, a torn tail in place or in a `.torn` file."""
    torn = b"".join(data for name, data in after.items() if name.endswith(".torn"))
    for name in APPENDED:
        old, new = before.get(name, b""), after.get(name)
        if old and new is None:
            yield f"{name} vanished"
            continue
        new, kept = new or b"", complete(old)
        tail = old[len(kept) :]
        if not new.startswith(kept):
            yield f"{name} changed within its first {len(kept)} bytes"
        elif not new.startswith(tail, len(kept)) and tail not in torn:
            yield f"{name}: the {len(tail)} bytes of its torn line are nowhere"
    if sent and PLAN in before and before[PLAN] != after.get(PLAN):
        yield f"{PLAN} changed although requests had been sent by it"


def well_formed(files: Files) -> Iterator[str]:
    """Every complete line is a JSON object, and every JSON file is whole."""
    for name in (*APPENDED, PLAN):
        for number, line in enumerate(complete(files.get(name, b"")).splitlines(), 1):
            if line.strip() and not _is_object(line):
                yield f"{name}:{number} is no JSON object"
    for name in WHOLE:
        if name in files and not _parses(files[name]):
            yield f"{name} is no JSON"


def _parses(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True


def _is_object(line: bytes) -> bool:
    return line.lstrip().startswith(b"{") and _parses(line)


def sent_once(witness: Witness) -> Iterator[str]:
    """No attempt was sent twice."""
    for attempt, count in Counter(witness.requests).items():
        if count > 1:
            yield f"attempt {attempt} was sent {count} times"


def sent_after_reservation(files: Files, witness: Witness) -> Iterator[str]:
    """Every attempt that the server saw is in the manifest's log; no claim on a run that has none."""
    if LOG not in files:
        return
    reserved: set[Attempt] = set()
    for row in rows_of(files, LOG):
        if row.get("t") == "reserve":
            numbers = row["a"]
            reserved |= set(zip(numbers[::3], numbers[1::3], numbers[2::3], strict=True))
    for attempt in sorted(set(witness.requests) - reserved):
        yield f"attempt {attempt} was sent and is not among the reserved ones"


def results_are_the_servers(files: Files, witness: Witness) -> Iterator[str]:
    """Each result line is one that the server gave for that attempt."""
    for row in rows_of(files, RESULTS):
        if attempt_of(row) not in witness.scored:
            yield f"result of attempt {attempt_of(row)}, for which the server completed no scored reply"


def results_are_right(files: Files) -> Iterator[str]:
    """Each rollout has one result at most, with the reward that it was given."""
    rows = rows_of(files, RESULTS)
    for row in rows:
        if row.get("reward") != reward_of(*key_of(row)):
            yield f"result of {key_of(row)} has reward {row.get('reward')}"
    for key, count in Counter(map(key_of, rows)).items():
        if count > 1:
            yield f"rollout {key} has {count} results"


def nothing_paid_twice(before: Files, asked_before: Counter[Key], witness: Witness) -> Iterator[str]:
    """A rollout whose result was on disk at a death is never asked for again."""
    asked = witness.asked()
    for key in map(key_of, rows_of(before, RESULTS)):
        if asked[key] > asked_before[key]:
            yield f"rollout {key} had a result and was sent again"


def finished_is_kept(files: Files, replied: Iterable[Attempt]) -> Iterator[str]:
    """After an orderly end every scored reply of the session is on disk."""
    kept = set(map(attempt_of, rows_of(files, RESULTS)))
    for attempt in sorted(set(replied) - kept):
        yield f"the scored reply to attempt {attempt} is not on disk after an orderly end"


def all_scored(files: Files, keys: set[Key]) -> Iterator[str]:
    """Each planned rollout has a result, and no other has."""
    found = set(map(key_of, rows_of(files, RESULTS)))
    for key in sorted(keys - found):
        yield f"rollout {key} has no result at the end"
    for key in sorted(found - keys):
        yield f"rollout {key} has a result and is not in the plan"


def mean_is(files: Files, mean: float) -> Iterator[str]:
    """The score is that of an undisturbed run, in the rows and in the server's metrics."""
    rewards = [row["reward"] for row in rows_of(files, RESULTS) if row.get("reward") is not None]
    if not rewards or sum(rewards) / len(rewards) != mean:
        yield f"mean reward of the rows is not {mean}"
    if METRICS not in files:
        yield f"{METRICS} is missing at the end"
    elif f'"mean/reward":{mean}' not in files[METRICS].decode().replace(" ", ""):
        yield f"{METRICS} does not say mean/reward {mean}"

"""Byte cuts: a small run is rebuilt as it was after any byte that it wrote, and resumed.

Rules:
* A crash cuts all files at once, in the order of writing: the resumed run keeps every claim of the campaign.
* A cut of one file alone is what no crash does: it is reported by the file's name with nothing sent, or does no harm.

Run: python -m crash.cuts; every byte, on both cores.
"""

import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from crash import claims
from crash.claims import Attempt, Witness
from crash.one_run import KEYS, REPEATS, TASKS, Script, run_once
from crash.script import mean_reward
from crash.write_stream import Said, Stream, Tap, folder_after
from rollbook.errors import NothingProducedError, RollbookError

MOST_SESSIONS: Final = 8
STRIDE: Final = 97
SPARSE: Final = 397
MEMORY: Final = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108  bytes are cut, no disk is tried
Image = dict[str, bytes]
Cut = tuple[str, int | None]


@dataclass(frozen=True)
class Recording:
    """A whole run: its write stream, and after how many steps its first session was over."""

    stream: Stream
    first_session: int
    files: Image


def recorded() -> Recording:
    """Run to the end, and take down what was written."""
    base = Path(tempfile.mkdtemp(prefix="rollbook-cuts-", dir=MEMORY))
    stream, first = Stream(), 0
    tap = Tap(base / "out", stream)
    try:
        with tap.on():
            for number in range(MOST_SESSIONS):
                _session(base, Script(tap.say), resume=number > 0)
                first = first or stream.length
                if _finished(base):
                    break
        files = claims.files_in(base / "out")
        return Recording(stream, first, {name: data for name, data in files.items() if not name.endswith(".lock")})
    finally:
        shutil.rmtree(base)


def _session(base: Path, script: Script, *, resume: bool) -> None:
    """Carry out a session; one in which nothing succeeded is a session like any other."""
    try:
        run_once(base, script, resume=resume)
    except NothingProducedError:
        return


def _finished(base: Path) -> bool:
    return {claims.key_of(row) for row in claims.rows_of(claims.files_in(base / "out"), claims.RESULTS)} >= KEYS


def sent_by(recording: Recording, steps: int) -> list[Attempt]:
    """Return the attempts that had been sent after so many steps."""
    return [call.what for call in recording.stream.until(steps) if isinstance(call, Said)]


def image_after(recording: Recording, steps: int) -> Image:
    """Return the folder as it was after so many steps."""
    return folder_after(recording.stream.until(steps))


def _laid_out(image: Image) -> Path:
    base = Path(tempfile.mkdtemp(prefix="rollbook-cuts-", dir=MEMORY))
    (base / "out").mkdir()
    for name, data in image.items():
        (base / "out" / name).write_bytes(data)
    return base


def crash_violations(recording: Recording, steps: int) -> list[str]:
    """Resume the run as a crash after so many steps left it, until all is scored; return what does not hold."""
    image, sent = image_after(recording, steps), sent_by(recording, steps)
    base = _laid_out(image)
    asked: list[Attempt] = []
    try:
        found = list(_resumed(base, image, sent, asked))
    except (RollbookError, OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        found = [f"the resume ended with {type(error).__name__}: {error}"]
    finally:
        shutil.rmtree(base)
    return [f"after step {steps} of {recording.stream.length}: {text}" for text in found]


def _resumed(base: Path, image: Image, sent: list[Attempt], asked: list[Attempt]) -> Iterator[str]:
    for _ in range(MOST_SESSIONS):
        _session(base, Script(asked.append), resume=True)
        if _finished(base):
            break
    files, witness = claims.files_in(base / "out"), Witness([*sent, *asked])
    yield from claims.only_appended(image, files, sent=bool(sent))
    yield from claims.well_formed(files)
    yield from claims.sent_once(witness)
    yield from claims.sent_after_reservation(files, witness)
    yield from claims.nothing_paid_twice(image, Witness(sent).asked(), witness)
    yield from claims.results_are_right(files)
    yield from claims.all_scored(files, KEYS)
    yield from claims.mean_is(files, mean_reward(TASKS, REPEATS))


def lone_cuts(image: Image, stride: int) -> Iterator[Cut]:
    """Yield cuts of one file: at every line's end, next to it, and inside; None removes the file."""
    for name in (claims.RESULTS, claims.FAILURES, claims.PLAN, claims.LOG, claims.MANIFEST):
        data = image.get(name, b"")
        ends = {index + 1 for index, byte in enumerate(data) if byte == ord("\n") and name != claims.MANIFEST}
        places = {0, *ends, *(end - 1 for end in ends), *(end + 7 for end in ends), *range(0, len(data), stride)}
        yield from ((name, place) for place in sorted(places) if place < len(data))
        if data:
            yield name, None


def lone_cut_violations(image: Image, sent: list[Attempt], cut: Cut) -> list[str]:
    """Resume the run with one file cut; return what does not hold."""
    name, place = cut
    less = {other: data for other, data in image.items() if other != name}
    base, asked = _laid_out(less if place is None else less | {name: image[name][:place]}), []
    try:
        run_once(base, Script(asked.append), resume=True)
        found = list(_harmless(image, sent, asked))
    except RollbookError as error:
        found = [] if name in str(error) else [f"the error does not name the file: {error}"]
        found += ["something was sent before the damage was reported"] if asked else []
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        found = [f"the resume ended with {type(error).__name__}: {error}"]
    finally:
        shutil.rmtree(base)
    return [f"{name} cut at {place}: {text}" for text in found]


def _harmless(image: Image, sent: list[Attempt], asked: list[Attempt]) -> Iterator[str]:
    """Nothing that had a result was sent again, and no attempt twice."""
    yield from claims.nothing_paid_twice(image, Counter(), Witness(asked))
    yield from claims.sent_once(Witness([*sent, *asked]))


def all_steps(recording: Recording) -> list[int]:
    """Return every cut but most of those inside a file in the making, which has no name yet that anybody reads."""
    steps: set[int] = {recording.stream.length}
    for piece, aside in recording.stream.pieces():
        steps |= set(piece[::STRIDE] if aside else piece)
    return sorted(steps)


def sampled(recording: Recording) -> list[int]:
    """Return the cuts of a sample: before each call, after its first byte, before its last, and some between."""
    steps: set[int] = {recording.stream.length}
    for piece, aside in recording.stream.pieces():
        steps |= {piece[0], piece[len(piece) // 2]} if aside else {piece[0], *piece[1:2], *piece[-1:], *piece[::SPARSE]}
    return sorted(steps)


def states(recording: Recording) -> tuple[int, int]:
    """Return the steps after which a session had ended in order: the first, and the last."""
    return recording.first_session, recording.stream.length


def lone_cuts_of(recording: Recording, stride: int, every: int = 1) -> list[str]:
    """Return what does not hold after one in `every` cuts of one file, in every state."""
    found = []
    for steps in states(recording):
        image, sent = image_after(recording, steps), sent_by(recording, steps)
        for cut in islice(lone_cuts(image, stride), 0, None, every):
            found += lone_cut_violations(image, sent, cut)
    return found


def _crashed(recording: Recording, steps: Iterable[int]) -> list[str]:
    return [text for step in steps for text in crash_violations(recording, step)]


def main() -> int:
    """Cut after every byte, and every file alone; print what came of it."""
    recording = recorded()
    steps = all_steps(recording)
    parts = [steps[start::64] for start in range(64)]
    with ProcessPoolExecutor(2) as pool:
        found = [text for part in pool.map(partial(_crashed, recording), parts) for text in part]
    lone = lone_cuts_of(recording, STRIDE)
    told = f"{len(steps)} crashes, {len(found)} violations; cuts of one file: {len(lone)} violations"
    print("\n".join([*found[:40], *lone[:40], told]))  # noqa: T201  a script's own table
    return 1 if found or lone else 0


if __name__ == "__main__":
    sys.exit(main())

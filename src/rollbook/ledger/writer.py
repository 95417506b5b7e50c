"""The one writer of a run: results and failures, appended line by line.

Rules:
* Group commit: lines that arrive while the disk is busy go out together, in one write and one fdatasync per file.
* Whoever hands over an ending is released once its line is committed.
* A row that cannot be written as JSON becomes a failure that keeps what could be kept; it never corrupts a line.
* An I/O error fails every line that was waiting and every line that comes after; what was acknowledged stays.

Source: collection.md §1.6, §1.7, §4.1, §4.2.
"""

import asyncio
import os
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import BinaryIO, Final, Self

from rollbook.errors import LedgerError
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.whole_file import sync_folder
from rollbook.records.codec import File, encode, saved_row
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import AGENT_RUN_ERROR_FAILURE_CLASS
from rollbook.records.json_values import JsonMapping
from rollbook.records.keys import NG_FAILURE_EVIDENCE_KEY
from rollbook.records.outcome import Failed, Interrupted, NeverStarted, Outcome, without_body
from rollbook.records.record import Record
from rollbook.records.task import Rollout

_EVIDENCE_KEPT: Final = 2000
_NOT_JSON: Final = (TypeError, ValueError, RecursionError, OverflowError)


_Waiting = tuple[File, bytes, asyncio.Future[None]]


class Durability(StrEnum):
    """When a line counts as written: on the disk, or handed to the operating system."""

    SYNC = "sync"
    FLUSH = "flush"


class Writer:
    """Appends endings to the results and failures files of `paths`. An asynchronous context manager."""

    def __init__(
        self, paths: RunPaths, *, durability: Durability = Durability.SYNC, record_omitted: bool = False
    ) -> None:
        self._paths = paths
        self._durability = durability
        self._record_omitted = record_omitted
        self._files: dict[File, BinaryIO] = {}
        self._waiting: list[_Waiting] = []
        self._committer: asyncio.Task[None] | None = None
        self._broken: LedgerError | None = None

    async def __aenter__(self) -> Self:
        """Open both files for appending; both exist from now on."""
        await asyncio.to_thread(self._open)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Commit what is waiting, and close; cancellation waits for that and is raised after it."""
        try:
            await finished(self._committer)
        finally:
            for file in self._files.values():
                file.close()

    async def write(self, rollout: Rollout, ending: Ending) -> Record:
        """Save how an attempt of `rollout` ended, and return the record of it.

        Raises:
            LedgerError: the line is not on disk.

        """
        record = Record(
            key=rollout.key,
            attempt=rollout.attempt,
            outcome=ending.outcome,
            agent=rollout.agent,
            server=rollout.server,
        )
        if isinstance(ending.outcome, Interrupted | NeverStarted) and not self._record_omitted:
            return record
        file, line, outcome = _line(ending, rollout.stamps)
        await self._append(file, line)
        return replace(record, outcome=without_body(outcome))

    async def _append(self, file: File, line: bytes) -> None:
        if self._broken is not None:
            raise self._broken
        done = asyncio.get_running_loop().create_future()
        self._waiting.append((file, line, done))
        if self._committer is None:
            self._committer = asyncio.create_task(self._commit_until_idle())
        await done

    async def _commit_until_idle(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._commit_batch(batch)
        finally:
            self._committer = None

    async def _commit_batch(self, batch: list[_Waiting]) -> None:
        try:
            await asyncio.to_thread(self._commit, [(file, line) for file, line, _ in batch])
        except (OSError, ValueError, MemoryError) as error:
            self._broken = LedgerError(
                f"cannot write to {self._paths.output.parent}: {error}. Rollouts that were reported as done are "
                "safe; free the disk and start the run again with --resume"
            )
            batch += self._waiting
            self._waiting = []
        for _, _, done in batch:
            _settle(done, self._broken)

    def _open(self) -> None:
        self._paths.output.parent.mkdir(parents=True, exist_ok=True)
        for file, path in ((File.RESULTS, self._paths.output), (File.FAILURES, self._paths.failures)):
            self._files[file] = _append_to(path)
        sync_folder(self._paths.output.parent)

    def _commit(self, lines: list[tuple[File, bytes]]) -> None:
        for file, handle in self._files.items():
            chunk = b"".join(line for name, line in lines if name is file)
            if chunk:
                _write_all(handle, chunk)
                if self._durability is Durability.SYNC:
                    os.fdatasync(handle.fileno())


async def finished(task: asyncio.Task[None] | None) -> None:
    """Wait for `task` to end, however often the waiter is cancelled; the cancellation is raised then."""
    cancelled: asyncio.CancelledError | None = None
    while task is not None and not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def _append_to(path: Path) -> BinaryIO:
    return path.open("ab", buffering=0)


def _write_all(handle: BinaryIO, chunk: bytes) -> None:
    left = memoryview(chunk)
    while left:
        left = left[handle.write(left) :]


def _settle(done: asyncio.Future[None], error: LedgerError | None) -> None:
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _line(ending: Ending, stamps: JsonMapping) -> tuple[File, bytes, Outcome]:
    file, row = saved_row(ending, stamps)
    try:
        return file, encode(row) + b"\n", ending.outcome
    except _NOT_JSON as error:
        return _unwritable(ending, stamps, error)


def _unwritable(ending: Ending, stamps: JsonMapping, error: Exception) -> tuple[File, bytes, Failed]:
    failed = Failed(
        failure_class=AGENT_RUN_ERROR_FAILURE_CLASS,
        message=f"the result cannot be written as JSON: {error}"[:_EVIDENCE_KEPT],
        kind="persistence_failed",
    )
    evidence = {NG_FAILURE_EVIDENCE_KEY: repr(dict(ending.payload))[:_EVIDENCE_KEPT].encode(errors="replace").decode()}
    file, row = saved_row(Ending(failed, evidence), stamps)
    return file, encode(row) + b"\n", failed

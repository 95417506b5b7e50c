"""Parts of result files examined by several processes at once, and handed on in their order.

Rules:
* So many parts are out as there are processes to work on them, and a few more: memory does not follow the files.
* A process that dies is replaced, and its lines are examined one by one; a line on which another dies is told as one
  that could not be checked.
* Where no process can be started, this one does the work.

Source: collection.md §7.1.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Final

from rollbook.health.batch import Batch, batch_of_one
from rollbook.health.examine import not_checked
from rollbook.verbs.health_lines import Part, singles_of
from rollbook.verbs.health_worker import Worker, WorkerDiedError, examined

_AHEAD: Final = 2
Start = Callable[[], Worker]


def batches_of(parts: Iterable[Part], workers: int, start: Start = Worker) -> Iterator[Batch]:
    """Yield what the `parts` hold, in their order, examined by `workers` processes; by this one if that is one.

    Raises:
        OSError: a file cannot be read.

    """
    if workers <= 1:
        yield from map(examined, parts)
        return
    pool = _Pool(start)
    try:
        yield from _in_order(parts, pool, workers)
    finally:
        pool.end()


def _in_order(parts: Iterable[Part], pool: "_Pool", workers: int) -> Iterator[Batch]:
    out: deque[Future[list[Batch]]] = deque()
    with ThreadPoolExecutor(workers, thread_name_prefix="health") as threads:
        for part in parts:
            out.append(threads.submit(pool.examined, part))
            if len(out) >= _AHEAD * workers:
                yield from out.popleft().result()
        while out:
            yield from out.popleft().result()


class _Pool:
    """Processes that wait for work; one is started when none waits."""

    def __init__(self, start: Start) -> None:
        self._start = start
        self._idle: SimpleQueue[Worker] = SimpleQueue()

    def examined(self, part: Part) -> list[Batch]:
        """Return what `part` holds."""
        worker = self._worker()
        if worker is None:
            return [examined(part)]
        try:
            batch = worker.examine(part)
        except WorkerDiedError:
            worker.end()
            return [self._alone(single) for single in singles_of(part)]
        self._idle.put(worker)
        return [batch]

    def _worker(self) -> Worker | None:
        try:
            return self._idle.get_nowait() if not self._idle.empty() else self._start()
        except OSError:
            return None

    def _alone(self, single: Part) -> Batch:
        """Examine one line in a process that may die of it."""
        worker = self._worker()
        if worker is None:
            return examined(single)
        try:
            batch = worker.examine(single)
        except WorkerDiedError:
            worker.end()
            return batch_of_one(
                not_checked(WorkerDiedError.__name__, single.ignored), single.file, single.line, single.ordinal
            )
        self._idle.put(worker)
        return batch

    def end(self) -> None:
        """Let all processes end."""
        while not self._idle.empty():
            self._idle.get_nowait().end()

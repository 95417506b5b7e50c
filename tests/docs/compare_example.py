"""The runs of docs/compare.md: 300 tasks of different difficulty, one baseline and two candidates, 3 points apart."""

from pathlib import Path

from compared_run import drawn, write

TASKS = 300
TRUE_GAIN = 0.03


def make(folder: Path) -> None:
    """Write the three runs below `folder`: 4 repeats of the baseline, 2 of `short`, 6 of `terse`."""
    write(folder / "baseline", drawn(TASKS, 4, 0.0, seed=28))
    write(folder / "short", drawn(TASKS, 2, TRUE_GAIN, seed=29), order=[*range(1, TASKS), 0])
    write(folder / "terse", drawn(TASKS, 6, -TRUE_GAIN, seed=30))


def make_again(folder: Path, repeats: int) -> None:
    """Write the baseline and `short` again, with so many repeats of every task on each side."""
    write(folder / "baseline", drawn(TASKS, repeats, 0.0, seed=100))
    write(folder / "short", drawn(TASKS, repeats, TRUE_GAIN, seed=1100))

"""What it costs to compare two finished runs by their rows, as a whole command.

Rules:
* 2 KB a result, 0.5 KB a line of the plan, 4 repeats a task; the second run's tasks are numbered the other way round.
* This process stays small: what Linux reports of a child's peak memory is no less than its parent's.
"""

import argparse
import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from figures import GYM, Process, run, say_figure, say_load
from folder import PLAN_BYTES, REPEATS, RESULT_BYTES, RUN_ID, make, params, reply

MEGABYTES = 500
_TASK, _NUMBER, _REPEAT, _REWARD = "@task@", "@number@", "@repeat@", "@reward@"


def make_run(output: Path, rollouts: int, *, backwards: bool) -> None:
    """Write a run whose rewards are 0 or 1, and for three tasks in four the same in every run."""
    output.parent.mkdir(parents=True)
    tasks = rollouts // REPEATS
    who = {"_ng_task_index": _NUMBER, "_ng_rollout_index": _REPEAT, "agent_ref": {"name": "stub_agent"}}
    said = params() | {"input": [{"role": "user", "content": f"What is the weather like in place {_TASK}?"}]}
    planned = _template({"responses_create_params": said} | who, PLAN_BYTES)
    answered = reply(RESULT_BYTES - 300) | {"responses_create_params": said, "reward": _REWARD}
    saved = _template(answered | who | {"_ng_run_id": RUN_ID}, 0)

    def line(template: str, position: int) -> bytes:
        number, repeat = divmod(position, REPEATS)
        task = tasks - 1 - number if backwards else number
        differs = backwards and task % 4 == 0
        reward = int((task * 7919 + repeat * 104729) % 10 < (3 if differs else 4))
        filled = template.replace(f'"{_NUMBER}"', str(number)).replace(f'"{_REPEAT}"', str(repeat))
        return filled.replace(_TASK, f"{task:09}").replace(f'"{_REWARD}"', f"{reward}.0").encode()

    make(output, rollouts, partial(line, planned), partial(line, saved))


def _template(row: dict[str, object], size: int) -> str:
    short = json.dumps(row, separators=(",", ":"))
    return json.dumps({"note": "x" * max(0, size - len(short) - 12)} | row, separators=(",", ":")) + "\n"


def compared(folder: Path, *flags: str) -> Process:
    """Compare the two runs below `folder`."""
    runs = ("--baseline", "one/rollouts.jsonl", "--candidates", "other/rollouts.jsonl")
    done = run(str(GYM), "dev", "compare", *runs, "--output-dir", "report", *flags, folder=folder)
    if done.code != 0:
        sys.exit(f"the comparison ended with {done.code}:\n{done.error[-2000:]}")
    return done


def main(arguments: list[str] | None = None) -> None:
    """Print what a comparison costs; `--scale` is how many rollouts a run has, in thousands."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=int, default=50)
    rollouts = parser.parse_args(arguments).scale * 1000
    say_load("compare")
    with tempfile.TemporaryDirectory(prefix="rollbook-compare-") as name:
        folder = Path(name)
        make_run(folder / "one" / "rollouts.jsonl", rollouts, backwards=False)
        make_run(folder / "other" / "rollouts.jsonl", rollouts, backwards=True)
        done = compared(folder)
        say_figure(f"compare 2 x {rollouts:,} rollouts", done.cost.wall, "s", None, f"{done.cost.cpu:.2f} s CPU")
        say_figure("compare: memory", done.peak_mb, "MB", MEGABYTES)


if __name__ == "__main__":
    main()

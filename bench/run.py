"""Every measurement, one after another, each in a process of its own: `python bench/run.py [NAME ...]`."""

import subprocess
import sys
from pathlib import Path

OF_A_RUN = ("start_up", "dispatch", "memory", "whole_stack", "fold", "resume", "append")
OF_SAVED_RUNS = ("aggregate", "profiles", "compare")


def main(names: list[str]) -> int:
    """Run the named measurements (all, when none is named); return 1 when one of them did not come to its end."""
    scripts = [Path(__file__).with_name(f"{name}.py") for name in names or (*OF_A_RUN, *OF_SAVED_RUNS)]
    return max(subprocess.run([sys.executable, str(script)], check=False).returncode for script in scripts)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

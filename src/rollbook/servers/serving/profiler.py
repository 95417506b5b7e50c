"""A profile of what this process does between two moments, on disk.

Rules:
* One profile is `<name>.prof`, for `python -m pstats`, beside `<name>.txt`, the functions that took longest.
* A name cannot lead out of the folder. Stopping what was not started does nothing.

Source: servers.md §3.2, §13.3.
"""

import cProfile
import io
import pstats
import re
from pathlib import Path
from typing import Final

MOST_FUNCTIONS: Final = 100
_UNFIT: Final = re.compile(r"(?:\A\.|[^\w.-])[^\w-]*")


class Profiler:
    """Profiles this thread from `start()` to `stop()`.

    `name`: what the files are called; `base_profile_dir`: the folder they are written to, made when missing.
    """

    def __init__(self, name: str, base_profile_dir: str | Path) -> None:
        self.name = _UNFIT.sub("_", name) or "profile"
        self.folder = Path(base_profile_dir)
        self._profile: cProfile.Profile | None = None

    def start(self) -> None:
        """Begin anew; what was being profiled is written first.

        Raises:
            ValueError: another profiler is at work in this thread.

        """
        self.stop()
        profile = cProfile.Profile()
        profile.enable()
        self._profile = profile

    def stop(self) -> None:
        """End, and write what was found.

        Raises:
            OSError: the folder cannot be written to.

        """
        profile, self._profile = self._profile, None
        if profile is None:
            return
        profile.disable()
        self.folder.mkdir(parents=True, exist_ok=True)
        profile.dump_stats(self.folder / f"{self.name}.prof")
        text = io.StringIO()
        pstats.Stats(profile, stream=text).sort_stats("cumulative").print_stats(MOST_FUNCTIONS)
        (self.folder / f"{self.name}.txt").write_text(text.getvalue(), encoding="utf-8")

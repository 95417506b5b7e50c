"""A check of the build: an environment that holds NeMo Gym itself gets no second package of its import name.

Rules:
* Only the environment of the interpreter that builds is known here; `import nemo_gym` looks again.
"""

import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class RefuseToShadow(BuildHookInterface):  # type: ignore[type-arg]
    """Ends the build where the distribution `nemo-gym` is installed."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Raise `SystemExit`, saying what was found and what to type, where the real package is installed."""
        for found in Path(sysconfig.get_path("purelib")).glob("nemo_gym-*.dist-info"):
            raise SystemExit(f"nemo-gym is installed here ({found}); type `pip uninstall nemo-gym` to use Rollbook's")

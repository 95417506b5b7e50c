"""The settings of `gym eval prepare`, under the keys that the command line and files give them.

Rules:
* The same arguments go to every script; whether one takes them is the script's business.

Source: servers.md §8.10.
"""

from typing import Any

from pydantic import Field, PositiveInt

from rollbook.config.settings import BaseNeMoGymCLIConfig


class BenchmarkPreparation(BaseNeMoGymCLIConfig):
    """How benchmarks are prepared: whether data that are there are taken, how many at a time, with what arguments."""

    use_cached_prepared_benchmarks: bool = False
    num_prepare_benchmark_processes: PositiveInt = 1
    prepare_script_args: dict[str, Any] = Field(default_factory=dict)

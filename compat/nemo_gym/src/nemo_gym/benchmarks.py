"""A benchmark's own settings."""

from rollbook import (
    BenchmarkConfig as BenchmarkConfig,
)

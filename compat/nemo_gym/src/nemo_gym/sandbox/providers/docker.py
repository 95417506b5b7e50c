"""Sandboxes of Docker."""

from rollbook.sandbox import (
    DockerCreateConfig as DockerCreateConfig,
    DockerProvider as DockerProvider,
)

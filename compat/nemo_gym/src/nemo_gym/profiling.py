"""Profiles of what a process does."""

from rollbook import Profiler as Profiler

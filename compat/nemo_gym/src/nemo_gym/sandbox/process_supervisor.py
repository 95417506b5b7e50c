"""A program to be uploaded into a sandbox; its file is ours."""

from rollbook.sandbox import (
    DEFAULT_CLEANUP_TIMEOUT as DEFAULT_CLEANUP_TIMEOUT,
    exec_timeout as exec_timeout,
    process_supervisor,
)

__file__ = process_supervisor.__file__

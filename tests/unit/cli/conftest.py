"""The command line sends the root logger to standard error; a test gives it back."""

import logging

import pytest


@pytest.fixture(autouse=True)
def root_logger_as_it_was():
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)

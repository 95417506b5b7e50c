"""How long properties are looked for: a busy machine is no failure; ROLLBOOK_FULL=1 and profile `nightly` look longer.

Runs that tests start hear a SIGHUP, also where the tests themselves were started by `nohup`. What collecting left in
memory stays there to the end: no collection of garbage looks at it again. A port that a test takes for unused is none
that another process of the tests is given.
"""

import gc
import signal
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from ports import free_port
from thoroughness import examples

settings.register_profile(
    "suite", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=examples(100)
)
settings.register_profile(
    "nightly",
    settings.get_profile("suite"),
    max_examples=10_000,
    stateful_step_count=25,
    print_blob=True,
)
settings.load_profile("suite")
signal.signal(signal.SIGHUP, signal.SIG_DFL)
gc.disable()  # until everything is collected: a fifth of the time of that went into looking for garbage


def pytest_collection_finish() -> None:
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Escape halves of characters in what a test logged: workers of the tests send it on as UTF-8."""
    report = yield
    report.sections = [(name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections]
    return report


@pytest.fixture
def unused_tcp_port() -> int:
    return free_port()

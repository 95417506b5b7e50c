"""What the command line lets through to standard error."""

import logging

from rollbook.cli.terminal import logged_to_stderr

LOG = logging.getLogger("somewhere.far")


def test_a_warning_that_repeats_is_cut_short_and_says_so(capsys):
    with logged_to_stderr(verbose=False):
        for number in range(1000):
            LOG.warning("request %d failed", number)
        LOG.warning("another kind")
    assert capsys.readouterr().err.splitlines() == [
        "WARNING: request 0 failed",
        "WARNING: request 1 failed",
        "WARNING: request 2 failed (further lines like this are left out; -v shows them)",
        "WARNING: another kind",
    ]


def test_everything_is_shown_when_asked_for(capsys):
    with logged_to_stderr(verbose=True):
        for number in range(10):
            LOG.debug("step %d", number)
    assert len(capsys.readouterr().err.splitlines()) == 10


def test_a_log_line_cannot_drive_the_terminal(capsys):
    with logged_to_stderr(verbose=False):
        LOG.warning("body=%s", "\x1b[31m\x00")
    assert capsys.readouterr().err == "WARNING: body=\\x1b[31m\\x00\n"


def test_what_was_set_up_for_a_command_is_taken_down_after_it(capsys):
    root = logging.getLogger()
    before = (list(root.handlers), root.level)
    with logged_to_stderr(verbose=True):
        pass
    assert (root.handlers, root.level) == before
    LOG.debug("nobody reads this")
    assert capsys.readouterr().err == ""

"""A sample of the byte cuts, larger with `ROLLBOOK_FULL=1`; `python -m crash.cuts` makes all of them."""

import os

import pytest

from crash import cuts

pytestmark = pytest.mark.crash
EVERY = 1 if os.environ.get("ROLLBOOK_FULL") == "1" else 5
"""Which of the sample are made: each, or one in five, which over many calls is each kind of cut."""


@pytest.fixture(scope="module")
def recording():
    return cuts.recorded()


def test_the_recorded_stream_rebuilds_the_folder(recording):
    assert cuts.image_after(recording, recording.stream.length) == recording.files


def test_a_run_that_is_cut_after_any_byte_is_resumed_to_the_same_score(recording):
    assert [text for step in cuts.sampled(recording)[::EVERY] for text in cuts.crash_violations(recording, step)] == []


def test_a_cut_of_one_file_alone_is_reported_or_harmless(recording):
    assert cuts.lone_cuts_of(recording, cuts.SPARSE, EVERY) == []

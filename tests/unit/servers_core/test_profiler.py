import pstats

import pytest

from rollbook import Profiler


def squares():
    return [number * number for number in range(1000)]


def test_what_ran_between_start_and_stop_is_written_for_pstats_and_for_readers(tmp_path):
    profiler = Profiler(name="a", base_profile_dir=tmp_path / "profiles")
    profiler.start()
    squares()
    profiler.stop()
    stats = pstats.Stats(str(tmp_path / "profiles" / "a.prof"))
    assert any(function == "squares" for _, _, function in stats.stats)
    assert "squares" in (tmp_path / "profiles" / "a.txt").read_text()


def test_stopping_what_was_not_started_writes_nothing(tmp_path):
    Profiler("a", tmp_path).stop()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "called"), [("../../x", "_x"), ("a/b c", "a_b_c"), ("", "profile"), ("..", "_")])
def test_a_name_cannot_lead_out_of_the_folder(name, called, tmp_path):
    profiler = Profiler(name, tmp_path)
    profiler.start()
    profiler.stop()
    assert sorted(path.stem for path in tmp_path.iterdir()) == [called] * 2

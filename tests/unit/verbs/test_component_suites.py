"""What a component's tests came to, told from pytest's exit code and its report alike."""

import pytest

from rollbook.verbs.component_suites import run_suite


@pytest.fixture
def suite(tmp_path):
    """Write a component with one module of tests, and return its folder."""

    def write(source):
        folder = tmp_path / "resources_servers" / "tool"
        (folder / "tests").mkdir(parents=True)
        (folder / "tests" / "test_tool.py").write_text(source)
        return folder

    return write


@pytest.mark.parametrize(
    ("ending", "code", "passed"),
    [
        ("pytest.exit('stop', 1)", 1, 1),
        ("pytest.exit('stop', 2)", 2, 1),
        ("atexit.register(os._exit, 3)", 3, 2),
    ],
)
async def test_a_suite_that_ends_early_is_not_whole_whatever_passed_until_then(suite, ending, code, passed):
    run = await run_suite(suite(f"import atexit, os, pytest\ndef test_a(): pass\ndef test_b(): {ending}\n"))
    assert not run.whole
    assert run.problem == f"pytest ended with exit code {code} before its end; until then: {passed} passed"


async def test_a_suite_whose_tests_fail_is_told_by_its_counts(suite):
    run = await run_suite(suite("def test_a(): pass\ndef test_b(): assert not 'whole'\n"))
    assert (run.whole, run.problem, run.counts) == (False, "", "1 passed, 1 failed")


async def test_a_module_that_cannot_be_loaded_is_an_error_with_its_count(suite):
    run = await run_suite(suite("import surely_missing\ndef test_a(): pass\n"))
    assert (run.whole, run.errors) == (False, 1)
    assert "surely_missing" in run.tail


async def test_a_report_that_was_cut_short_is_none(suite):
    cut = "def test_a(request):\n    import atexit\n    path = request.config.option.xmlpath\n"
    run = await run_suite(suite(cut + "    atexit.register(lambda: open(path, 'w').write('<testsuites>'))\n"))
    assert run.problem == "pytest ended with exit code 0 and left no report"

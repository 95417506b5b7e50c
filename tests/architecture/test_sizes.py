"""How large a file and a function may be."""

import statistics
from pathlib import Path

from architecture.source_tree import REPOSITORY, code_lines, functions, modules

LONGEST_FILE = 400
LONGEST_FUNCTION = 50
MEDIAN_FUNCTION = 8
MOST_FUNCTIONS = 27


def _python_files() -> list[Path]:
    return [path for folder in ("src", "tests", "bench", "compat") for path in (REPOSITORY / folder).rglob("*.py")]


def _sizes() -> dict[str, int]:
    return {
        f"{module.place}: {name}": code_lines(module.text, function)
        for module in modules()
        for name, function in functions(module.tree)
    }


def test_no_file_is_longer_than_four_hundred_lines():
    long = {
        path.relative_to(REPOSITORY).as_posix(): count
        for path in _python_files()
        if (count := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    }
    assert long == {}


def test_no_function_has_more_than_fifty_lines_of_code():
    assert {name: size for name, size in _sizes().items() if size > LONGEST_FUNCTION} == {}


def test_half_of_all_functions_have_at_most_eight_lines():
    assert statistics.median(_sizes().values()) <= MEDIAN_FUNCTION


def test_nineteen_of_twenty_functions_have_at_most_twenty_seven_lines():
    sizes = _sizes().values()
    assert sum(size > MOST_FUNCTIONS for size in sizes) / len(sizes) <= 0.05

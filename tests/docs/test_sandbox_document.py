"""docs/sandbox.md says what `local` takes, and its example runs."""

import inspect
import re

import pytest

from architecture.source_tree import REPOSITORY, table, words_in_code
from rollbook.sandbox import LocalProvider

TEXT = (REPOSITORY / "docs" / "sandbox.md").read_text(encoding="utf-8")


def test_the_table_of_arguments_is_the_signature():
    rows = {words_in_code(row[0])[0]: row[1] for row in table("sandbox.md", "The block of a configuration")}
    given = {name: each.default for name, each in inspect.signature(LocalProvider).parameters.items()}
    del given["isolation"]
    assert list(rows) == list(given)
    numbers = {name: int(said) for name, said in rows.items() if said.isdigit()}
    assert numbers == {name: default for name, default in given.items() if type(default) is int}


@pytest.mark.parametrize(("answer", "reward"), [("print('fine')", 1.0), ("raise SystemExit(1)", 0.0)])
async def test_the_example_runs(answer, reward):
    code = re.search(r"```python\n(.*?)```", TEXT, re.DOTALL)[1]
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102  the example is what this test is about
    assert await names["graded"](answer) == reward

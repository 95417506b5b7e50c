"""The words of docs/glossary.md, and the words that name nothing of ours."""

import ast
import re
from collections.abc import Iterator

import pytest

from architecture.source_tree import REPOSITORY, Module, modules, table, words_in_code

GLOSSARY = table("glossary.md", "Glossary")
OUR_WORDS = [re.findall(r"\*\*(.+?)\*\*", word)[0] for word, _, _ in GLOSSARY]
REFUSED = {word for _, _, refused in GLOSSARY for word in words_in_code(refused)}
ROOMS_OF_THE_GLOSSARY = {"records", "plan", "dispatch", "ledger", "scoring"}
NOT_OURS = {"helper", "helpers", "manager", "managers", "util", "utils", "misc", "common"}
KEYS_OF_THE_FIELD = {"pending_rejudges"}
KNOWN_TO_CALLERS = {"RolloutCollectionHelper", "RolloutAggregationHelper"}


def words_of(identifier: str) -> list[str]:
    """Split snake_case and CamelCase into lower-case words."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", identifier)
    return [word.lower() for word in spaced.split("_") if word]


def names_given_in(module: Module) -> Iterator[tuple[str, int]]:
    """Yield every name that the file gives to something: modules, classes, functions, arguments, variables."""
    yield module.name.rsplit(".", 1)[-1], 1
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node.lineno
        elif isinstance(node, ast.arg):
            yield node.arg, node.lineno
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


@pytest.mark.parametrize(
    ("identifier", "words"),
    [("RolloutKey", ["rollout", "key"]), ("read_row", ["read", "row"]), ("_HTTPState", ["http", "state"])],
)
def test_an_identifier_is_split_into_its_words(identifier, words):
    assert words_of(identifier) == words


def test_no_name_of_ours_is_a_word_that_says_nothing():
    empty = [
        f"{module.place}:{line} {name}"
        for module in modules()
        for name, line in names_given_in(module)
        if NOT_OURS & set(words_of(name)) and name not in KNOWN_TO_CALLERS
    ]
    assert empty == []


def test_no_file_or_folder_is_named_by_a_word_that_says_nothing():
    found = [
        path.relative_to(REPOSITORY).as_posix()
        for folder in ("src", "tests", "docs", "bench")
        for path in (REPOSITORY / folder).rglob("*")
        if NOT_OURS & set(words_of(re.sub(r"\W", "_", path.stem)))
    ]
    assert found == []


@pytest.mark.parametrize("word", OUR_WORDS)
def test_every_word_of_the_glossary_is_in_use(word):
    pattern = re.compile(word.replace(" ", r"[ _]?").removesuffix("s"), re.IGNORECASE)
    assert any(pattern.search(module.text) for module in modules())


def test_the_glossary_lists_each_word_once():
    assert sorted(OUR_WORDS) == sorted(set(OUR_WORDS))


def test_no_name_in_the_core_is_a_word_that_the_glossary_refuses():
    refused = [
        f"{module.place}:{line} {name}"
        for module in modules()
        if module.room in ROOMS_OF_THE_GLOSSARY
        for name, line in names_given_in(module)
        if REFUSED & set(words_of(name)) and name not in KEYS_OF_THE_FIELD
    ]
    assert refused == []

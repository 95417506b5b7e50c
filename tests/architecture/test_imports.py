"""Who may import whom, as docs/architecture.md says it."""

import ast
import graphlib
from pathlib import Path

import pytest

from architecture.source_tree import (
    PACKAGE,
    SHELF_TYPES,
    Module,
    imports_of,
    known_modules,
    modules,
    room_of,
    table,
    words_in_code,
)

MAY_IMPORT = {
    words_in_code(room)[0]: frozenset(words_in_code(cell))
    for room, cell in table("architecture.md", "Who may import whom")
}
NEVER_TOUCHES = {
    words_in_code(room)[0]: frozenset(words_in_code(cell))
    for room, cell in table("architecture.md", "What a room never touches")
}


def test_every_room_has_a_row_in_the_import_table():
    assert {module.room for module in modules()} <= set(MAY_IMPORT)


def test_every_room_has_a_row_in_the_table_of_rooms():
    described = {words_in_code(room)[0] for room, _ in table("architecture.md", "The walk")}
    assert described == {module.room for module in modules()} - {"face"}


def test_the_import_table_names_only_rooms_it_has_rows_for():
    assert frozenset().union(*MAY_IMPORT.values()) <= set(MAY_IMPORT)


@pytest.mark.parametrize("room", sorted(MAY_IMPORT))
def test_a_room_imports_only_rooms_that_the_table_allows(room):
    strangers = [
        f"{module.place}:{found.line} imports {found.target}"
        for module in modules()
        if module.room == room
        for found in imports_of(module, known_modules())
        if found.target.split(".")[0] == "rollbook" and room_of(found.target) not in MAY_IMPORT[room] | {room}
    ]
    assert strangers == []


def test_no_two_modules_import_each_other_even_inside_functions():
    graph = {
        module.name: {
            found.target
            for found in imports_of(module, known_modules())
            if found.target in known_modules() - {module.name}
        }
        for module in modules()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_import_is_hidden_from_the_interpreter():
    hidden = [
        f"{module.place}:{node.lineno}"
        for module in modules()
        for node in ast.walk(module.tree)
        if (isinstance(node, ast.Name) and node.id == "TYPE_CHECKING")
        or (isinstance(node, ast.Attribute) and node.attr == "TYPE_CHECKING")
    ]
    assert hidden == []


def _public_names(package: Path) -> frozenset[str]:
    stub = ast.parse((package / "__init__.pyi").read_text(encoding="utf-8"))
    imported = (
        alias.asname or alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    )
    declared = (
        node.target.id for node in stub.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    )
    return frozenset(imported) | frozenset(declared)


def test_a_component_takes_only_public_names_from_rollbook():
    public = {"rollbook": _public_names(PACKAGE), "rollbook.sandbox": _public_names(PACKAGE / "sandbox")}
    private = [
        f"{module.place}:{found.line} takes {found.name or found.target}"
        for module in modules()
        if module.room == "components"
        for found in imports_of(module, known_modules())
        if found.target.split(".")[0] == "rollbook" and found.name not in public.get(found.target, frozenset())
    ]
    assert private == []


def test_a_component_names_its_neighbours_by_the_fields_layout():
    relative = [
        f"{module.place}:{node.lineno}"
        for module in modules()
        if module.room == "components"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.level > 0
    ]
    assert relative == []


def test_only_components_import_from_the_shelf():
    takers = [
        f"{module.place}:{found.line} imports {found.target}"
        for module in modules()
        if module.room != "components"
        for found in imports_of(module, known_modules())
        if found.target.split(".")[0] in SHELF_TYPES
    ]
    assert takers == []


def _touched(module: Module) -> list[tuple[str, int]]:
    imported = [(found.target.split(".")[0], found.line) for found in imports_of(module, known_modules())]
    called = [
        (node.func.id, node.lineno)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    ]
    return imported + [(name, line) for name, line in called if name == "open"]


@pytest.mark.parametrize("room", sorted(NEVER_TOUCHES))
def test_a_room_never_touches_what_the_table_denies_it(room):
    touches = [
        f"{module.place}:{line} uses {name}"
        for module in modules()
        if module.room == room
        for name, line in _touched(module)
        if name in NEVER_TOUCHES[room]
    ]
    assert touches == []

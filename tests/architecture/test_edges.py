"""Where the outside is met: exceptions, speech, time, untyped JSON, and the field's own keys."""

import ast
import re
from collections.abc import Iterator

from architecture.source_tree import Module, functions, modules, table, words_in_code

MOST_BOUNDARIES = 10
SPEAKING_ROOMS = {"cli", "live", "report"}
ROOMS_WITH_TIME = {"clock", "servers", "components", "testing"}
MAY_DRAW = {"config/addresses.py", "compare/draws.py"}
"""One chooses a port, the other draws from a seed that it is given."""
RUNS_ELSEWHERE = {"sandbox/process_supervisor.py"}
"""A program of its own, for the inside of a sandbox: nobody hands it a clock."""
CLOCKS_AND_DICE = {"time", "random", "utcnow", "today", "asyncio.sleep", "datetime.now", "datetime.datetime.now"}
UNTYPED_JSON_ROOMS = {"config", "api", "servers", "components"}
UNTYPED_JSON_FILES = {"records/codec.py", "records/reply_codec.py", "records/identity.py", "scoring/aggregate.py"}
ENDING_KEY = re.compile(
    r"_ng_failure_\w+|_ng_no_persist|_ng_dispatch_drained|_ng_omitted_rollout|_ng_unrouted_run_error"
)


def _swallowers(module: Module) -> Iterator[str]:
    owners = {handler: name for name, function in functions(module.tree) for handler in _handlers(function)}
    for handler in _handlers(module.tree):
        if _catches_everything(handler) and not _raises_again(handler):
            yield f"{module.place}: {owners.get(handler, 'the module itself')}"


def _handlers(tree: ast.AST) -> list[ast.ExceptHandler]:
    return [node for node in ast.walk(tree) if isinstance(node, ast.ExceptHandler)]


def _catches_everything(handler: ast.ExceptHandler) -> bool:
    caught = handler.type
    kinds = caught.elts if isinstance(caught, ast.Tuple) else [caught]
    return any(
        kind is None or (isinstance(kind, ast.Name) and kind.id in {"Exception", "BaseException"}) for kind in kinds
    )


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def _boundaries() -> set[str]:
    return {words_in_code(where)[0] for where, _ in table("architecture.md", "Boundaries")}


def test_everything_is_caught_only_at_the_listed_boundaries():
    assert {place for module in modules() for place in _swallowers(module)} == _boundaries()


def test_there_are_ten_boundaries_at_most_each_with_a_reason():
    rows = table("architecture.md", "Boundaries")
    assert len(rows) <= MOST_BOUNDARIES
    assert all(reason for _, reason in rows)


def test_only_the_speaking_rooms_print():
    speakers = [
        f"{module.place}:{node.lineno}"
        for module in modules()
        if module.room not in SPEAKING_ROOMS
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert speakers == []


def _asks_the_time(module: Module) -> Iterator[int]:
    for node in ast.walk(module.tree):
        if _clock_or_die_named_in(node) & CLOCKS_AND_DICE:
            yield node.lineno


def _clock_or_die_named_in(node: ast.AST) -> set[str]:
    match node:
        case ast.Import(names=names):
            return {alias.name for alias in names}
        case ast.ImportFrom(module=str(name)):
            return {name}
        case ast.Attribute(attr="utcnow" | "today" as name):
            return {name}
        case ast.Attribute():
            return {ast.unparse(node)}
        case _:
            return set()


def test_time_and_chance_are_arguments_outside_clock_and_servers():
    askers = [
        f"{module.place}:{line}"
        for module in modules()
        if module.room not in ROOMS_WITH_TIME and module.place not in MAY_DRAW | RUNS_ELSEWHERE
        for line in _asks_the_time(module)
    ]
    assert askers == []


def _untyped(module: Module) -> Iterator[int]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Subscript) and ast.unparse(node).replace(" ", "").lower() in {
            "dict[str,any]",
            "dict[any,any]",
        }:
            yield node.lineno


def test_untyped_objects_stop_at_the_codec():
    found = [
        f"{module.place}:{line}"
        for module in modules()
        if module.room not in UNTYPED_JSON_ROOMS and module.place not in UNTYPED_JSON_FILES
        for line in _untyped(module)
    ]
    assert found == []


def test_every_module_opens_with_its_charter():
    silent = [module.place for module in modules() if not ast.get_docstring(module.tree)]
    assert silent == []


def test_every_module_outside_the_shelf_states_its_rules():
    unruled = [
        module.place
        for module in modules()
        if module.room not in {"components", "face"}
        and module.path.name != "__init__.py"
        and "\nRules:\n" not in (ast.get_docstring(module.tree) or "")
    ]
    assert unruled == []


def test_the_key_of_an_ending_is_spelled_only_in_records():
    spelled = [
        f"{module.place}:{node.lineno} {node.value}"
        for module in modules()
        if module.room != "records"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and ENDING_KEY.fullmatch(node.value)
    ]
    assert spelled == []

"""A gate's policy, read from its file.

Rules:
* A key that is wrong is named with its place in the file: a gate that was misspelt must not open.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml
from pydantic import ValidationError

from rollbook.compare.nearest import meant
from rollbook.compare.policy import Policy, Tier
from rollbook.config.recursion import as_deep_as_usual
from rollbook.errors import ConfigError, ConfigPathNotFoundError

_PREFIX = "Value error, "


def read_policy(path: Path) -> Policy:
    """Return the policy in a YAML file.

    Raises:
        ConfigPathNotFoundError: no such file.
        ConfigError: no YAML, or no policy; names every line and key that is wrong.

    """
    try:
        text = path.read_text("utf-8")
        with as_deep_as_usual():
            node, loaded = yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    except FileNotFoundError:
        raise ConfigPathNotFoundError(f"{path}: no such policy; give --gate the path of a YAML file") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = f":{mark.line + 1}" if mark else ""
        raise ConfigError(f"{path}{place}: malformed YAML: {error.problem or 'unreadable'}") from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError, OSError) as error:
        raise ConfigError(f"{path}: cannot be read as YAML: {type(error).__name__}") from None
    if not isinstance(loaded, dict):
        raise ConfigError(f"{path}: a policy is a mapping of keys to values, for example `max_drop: 0.02`")
    if twice := next(_repeated(node), None):
        raise ConfigError(f"{path}:{twice.start_mark.line + 1}: {twice.value}: the key stands here for the second time")
    try:
        return Policy.model_validate(loaded)
    except ValidationError as error:
        raise ConfigError("\n".join(_faults(path, node, error))) from None


def _repeated(node: yaml.Node | None) -> Iterator[yaml.ScalarNode]:
    """Yield the keys that stand in a mapping that has them already; a block that an alias repeats is read once."""
    left, read = [node], set[int]()
    while left:
        block = left.pop()
        if block is None or id(block) in read:
            continue
        read.add(id(block))
        if isinstance(block, yaml.MappingNode):
            yield from _twice(block)
            left += [value for _, value in block.value]
        elif isinstance(block, yaml.SequenceNode):
            left += block.value


def _twice(block: yaml.MappingNode) -> Iterator[yaml.ScalarNode]:
    seen: set[str] = set()
    for key, _ in block.value:
        if isinstance(key, yaml.ScalarNode) and key.value in seen:
            yield key
        seen.add(str(key.value))


def _faults(path: Path, node: yaml.Node | None, error: ValidationError) -> Iterator[str]:
    for fault in error.errors(include_url=False, include_context=False):
        where = fault["loc"]
        key = ".".join(map(str, where)) or "the policy"
        yield f"{path}:{_line(node, where)}: {key}: {_said(fault['type'], where, fault['msg'])}"


def _said(kind: str, where: Sequence[int | str], said: str) -> str:
    if kind != "extra_forbidden" or not where:
        return said.removeprefix(_PREFIX)
    known = Policy.model_fields if len(where) == 1 else Tier.model_fields
    return f"there is no such key{meant(str(where[-1]), known)}"


def _line(node: yaml.Node | None, where: Sequence[int | str]) -> int:
    """Return the line of a key, or of the nearest one around it."""
    line = 1 if node is None else node.start_mark.line + 1
    for step in where:
        found = _step(node, step)
        if found is None:
            break
        line, node = found
    return line


def _step(node: yaml.Node | None, step: int | str) -> tuple[int, yaml.Node] | None:
    if isinstance(node, yaml.MappingNode):
        return next(((key.start_mark.line + 1, value) for key, value in node.value if key.value == step), None)
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        item: yaml.Node = node.value[step]
        return item.start_mark.line + 1, item
    return None

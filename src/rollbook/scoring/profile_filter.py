"""Which tasks to keep, as a condition on what each achieved: `pass@4>=0.5 and mean<0.9` → a function of a task's rates.

Rules:
* The language is this small and our own: numbers, the names below, comparisons (also chained: `0.2 < mean < 0.8`),
  `and`, `or`, `not` and parentheses; nothing is ever evaluated as a program.
* What is undefined for a task (`pass@4` of three rollouts) makes a comparison undefined, and so a condition that hangs
  on it: `or` is true when one side is, `and` false when one side is, whatever the other says; else both are undefined.
* An error names the column, from 1.

Source: collection.md §9.4; case RC-74.
"""

import operator
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NoReturn

from rollbook.errors import RollbookError

Lookup = Callable[[str], float | None]
"""The value of a name for one task, None where it is undefined."""

NAMES: Final = ("mean", "max", "min", "std", "n", "missing")
"""What a condition may name, beside pass@k."""
PASS: Final = "pass@"  # noqa: S105  no password: pass@k

_DEEPEST: Final = 50
_NUMBER: Final = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TOKEN: Final = re.compile(
    rf"\s*(?:(?P<number>-?{_NUMBER})(?![\w.@])|(?P<word>pass@[0-9]+(?!\w)|[A-Za-z_]\w*(?![@\w]))"
    r"|(?P<operator><=|>=|==|!=|<|>)|(?P<paren>[()]))"
)
_COMPARES: Final[dict[str, Callable[[float, float], bool]]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_KNOWN: Final = f"{', '.join(NAMES)} and pass@k"


class FilterError(RollbookError):
    """A condition that cannot be read; names the column."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Operand:
    """A number, or a name that stands for one."""

    name: str | None
    number: float = 0.0

    def value(self, lookup: Lookup) -> float | None:
        """Return the number for one task."""
        return self.number if self.name is None else lookup(self.name)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Operands and the operators between them; every neighbouring pair has to hold."""

    operands: tuple[Operand, ...]
    operators: tuple[str, ...]

    def holds(self, lookup: Lookup) -> bool | None:
        """Whether it holds; None where it cannot be told."""
        values = [operand.value(lookup) for operand in self.operands]
        pairs = zip(values, self.operators, values[1:], strict=False)
        return _all_of(None if a is None or b is None else _COMPARES[sign](a, b) for a, sign, b in pairs)


@dataclass(frozen=True, slots=True)
class Both:
    """`and`."""

    parts: "tuple[Condition, ...]"

    def holds(self, lookup: Lookup) -> bool | None:
        """Whether every part holds; None where it cannot be told."""
        return _all_of(part.holds(lookup) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Either:
    """`or`."""

    parts: "tuple[Condition, ...]"

    def holds(self, lookup: Lookup) -> bool | None:
        """Whether a part holds; None where it cannot be told."""
        fails = _all_of(_negated(part.holds(lookup)) for part in self.parts)
        return _negated(fails)


@dataclass(frozen=True, slots=True)
class Negation:
    """`not`."""

    part: "Condition"

    def holds(self, lookup: Lookup) -> bool | None:
        """Whether its part does not hold; None where it cannot be told."""
        return _negated(self.part.holds(lookup))


Condition = Comparison | Both | Either | Negation


def parsed(text: str) -> Condition:
    """Return the condition that `text` states.

    Raises:
        FilterError: it states none; says what was found, in which column, and what could stand there.

    """
    parser = _Parser(text, tuple(_tokens(text)))
    condition = parser.condition(0)
    if parser.kind != "end":
        parser.fail("and, or, or the end")
    return condition


def names_in(condition: Condition) -> tuple[str, ...]:
    """Return the names that a condition uses, each once, in the order in which they stand."""
    return tuple(dict.fromkeys(_names(condition)))


def _names(condition: Condition) -> Iterator[str]:
    match condition:
        case Comparison(operands=operands):
            yield from (operand.name for operand in operands if operand.name is not None)
        case Negation(part=part):
            yield from _names(part)
        case Both(parts=parts) | Either(parts=parts):
            for part in parts:
                yield from _names(part)


def _all_of(holds: Iterator[bool | None]) -> bool | None:
    verdict: bool | None = True
    for one in holds:
        if one is False:
            return False
        verdict = None if one is None else verdict
    return verdict


def _negated(holds: bool | None) -> bool | None:
    return None if holds is None else not holds


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    column: int


def _tokens(text: str) -> Iterator[_Token]:
    at, end = 0, len(text.rstrip())
    while at < end:
        match = _TOKEN.match(text, at)
        if match is None:
            column = len(text) - len(text[at:].lstrip())
            raise _error(text, column, f"cannot read {text[column:].split(maxsplit=1)[0]!r}")
        kind = match.lastgroup or ""
        yield _Token(kind, match[kind], match.start(kind))
        at = match.end()
    yield _Token("end", "", end)


@dataclass(slots=True)
class _Parser:
    text: str
    tokens: Sequence[_Token]
    at: int = 0

    @property
    def token(self) -> _Token:
        return self.tokens[self.at]

    @property
    def kind(self) -> str:
        return self.token.kind

    def condition(self, depth: int) -> Condition:
        parts = self._parts("or", lambda: self._conjunction(depth))
        return parts[0] if len(parts) == 1 else Either(parts)

    def fail(self, wanted: str) -> NoReturn:
        found = "the end" if self.kind == "end" else repr(self.token.text)
        raise _error(self.text, self.token.column, f"{found} stands where {wanted} should")

    def _conjunction(self, depth: int) -> Condition:
        parts = self._parts("and", lambda: self._negation(depth))
        return parts[0] if len(parts) == 1 else Both(parts)

    def _parts(self, word: str, part: Callable[[], Condition]) -> tuple[Condition, ...]:
        parts = [part()]
        while self._took(word):
            parts.append(part())
        return tuple(parts)

    def _negation(self, depth: int) -> Condition:
        negated = False
        while self._took("not"):
            negated = not negated
        held = self._grouped(depth) if self.token.text == "(" else self._comparison()
        return Negation(held) if negated else held

    def _grouped(self, depth: int) -> Condition:
        if depth == _DEEPEST:
            raise _error(self.text, self.token.column, f"more than {_DEEPEST} parentheses are open")
        self.at += 1
        held = self.condition(depth + 1)
        if not self._took(")"):
            self.fail(")")
        return held

    def _comparison(self) -> Comparison:
        operands, operators = [self._operand()], []
        while self.kind == "operator":
            operators.append(self.token.text)
            self.at += 1
            operands.append(self._operand())
        if not operators:
            self.fail("a comparison such as >= 0.5")
        return Comparison(tuple(operands), tuple(operators))

    def _operand(self) -> Operand:
        token = self.token
        if token.kind == "number":
            self.at += 1
            return Operand(None, float(token.text))
        if token.kind != "word" or token.text in ("and", "or", "not"):
            self.fail(f"a number or a name ({_KNOWN})")
        if token.text not in NAMES and not token.text.startswith(PASS):
            raise _error(self.text, token.column, f"{token.text} is no name here; known are {_KNOWN}")
        if token.text.startswith(PASS) and not 0 < int(token.text.removeprefix(PASS)[:20]) <= _LARGEST_K:
            raise _error(self.text, token.column, f"{token.text}: k is a number from 1 to {_LARGEST_K}")
        self.at += 1
        return Operand(token.text)

    def _took(self, text: str) -> bool:
        took = self.token.text == text
        self.at += took
        return took


_LARGEST_K: Final = 1_000_000


def _error(text: str, column: int, said: str) -> FilterError:
    return FilterError(f"--keep {text!r}: column {column + 1}: {said}")

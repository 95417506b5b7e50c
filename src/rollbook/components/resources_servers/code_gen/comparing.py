"""Whether what a solution put out is what was expected.

Rules:
* Printed text is compared line by line, without white space at the ends of lines and of the whole. Two lines are equal
  as they stand, as one verdict word in any case, or as numbers.
* Returned values are compared as JSON has them: a tuple is a list, a key is a text.
* Numbers of which one is no whole one may differ by a millionth, also in lists, but not in objects.

Source: servers.md §7.3 (4); the comparison is LiveCodeBench's.
"""

import json
import math
from decimal import Decimal, InvalidOperation
from typing import Final

VERDICTS: Final = frozenset({"yes", "no"})
NEAR: Final = 1e-6
MOST_SHOWN: Final = 300


def printed_fault(output: str, expected: str) -> str | None:
    """Return in what a printed text differs from the expected one, None when it does not."""
    lines, wanted = lines_of(output), lines_of(expected)
    if len(lines) != len(wanted):
        return "Wrong answer: mismatched output length"
    for index, (line, want) in enumerate(zip(lines, wanted, strict=True)):
        if not equal_lines(line, want):
            return f"Wrong answer at output_line_idx={index}: {shortened(line)} != {shortened(want)}"
    return None


def lines_of(text: str) -> list[str]:
    """Return the lines of a text without white space around them."""
    return [line.strip() for line in text.strip().split("\n")]


def equal_lines(line: str, want: str) -> bool:
    """Return whether two lines say the same."""
    if line == want:
        return True
    if want.lower() in VERDICTS:
        return line.lower() == want.lower()
    numbers, wanted = numbers_in(line), numbers_in(want)
    if numbers is None or wanted is None or len(numbers) != len(wanted):
        return False
    return all(equal_numbers(number, other) for number, other in zip(numbers, wanted, strict=True))


def numbers_in(line: str) -> list[Decimal] | None:
    """Return the numbers that a line consists of, None when it has anything else, NaN too, which equals nothing."""
    try:
        numbers = [Decimal(word) for word in line.split()]
    except InvalidOperation:
        return None
    return None if any(number.is_nan() for number in numbers) else numbers


def equal_numbers(number: Decimal, other: Decimal) -> bool:
    """Return whether two printed numbers are the same."""
    if number == other:
        return True
    if whole(number) and whole(other):
        return False
    return near(float(number), float(other))


def whole(number: Decimal) -> bool:
    """Return whether a number was printed without a fraction."""
    exponent = number.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= 0


def near(value: float, other: float) -> bool:
    """Return whether two fractions are the same but for rounding."""
    return math.isclose(value, other, rel_tol=NEAR, abs_tol=NEAR)


def equal_values(value: object, want: object) -> bool:
    """Return whether a returned value is the expected one.

    Raises:
        RecursionError: they are nested too deeply.

    """
    if isinstance(value, list) and isinstance(want, list):
        return len(value) == len(want) and all(map(equal_values, value, want))
    if isinstance(value, int | float) and isinstance(want, int | float) and float in {type(value), type(want)}:
        return equal_fractions(value, want)
    return value == want


def equal_fractions(value: float, want: float) -> bool:
    """Return whether two numbers, one of them a fraction, are the same."""
    try:
        return near(float(value), float(want)) or (math.isnan(value) and math.isnan(want))
    except OverflowError:
        return False


def returned_fault(output: str, expected: str) -> str | None:
    """Return why a returned value is not the expected one, None when it is.

    Raises:
        ValueError: the expected value is no JSON.

    """
    try:
        want = json.loads(expected)
    except RecursionError as error:
        raise ValueError("an expected value is nested too deeply") from error
    try:
        return None if equal_values(json.loads(output), want) else "Wrong Answer"
    except (ValueError, RecursionError):
        return "Wrong Answer"


def shortened(text: str) -> str:
    """Return a text, without its middle when it is long."""
    if len(text) <= MOST_SHOWN:
        return text
    return f"{text[: MOST_SHOWN // 2]}...(truncated) ...{text[-MOST_SHOWN // 2 :]}"

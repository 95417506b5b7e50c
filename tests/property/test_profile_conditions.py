"""Conditions of `--keep` against Python's own reading of them."""

import math

from hypothesis import given
from hypothesis import strategies as st

from rollbook.scoring.profile_filter import parsed

NAMES = {"mean": 0.25, "max": 1.0, "min": 0.0, "std": 0.5, "n": 4.0, "missing": 1.0, "pass@2": 0.5}
PYTHON = {name.replace("@", "_at_"): value for name, value in NAMES.items()}

operands = st.sampled_from([*NAMES, "0", "0.25", ".5", "1e0", "4", "-1.5"])
signs = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
spaces = st.sampled_from([" ", "  ", "\t"])
comparisons = st.builds(
    lambda first, rest: first + "".join(f"{sign} {operand}" for sign, operand in rest),
    operands,
    st.lists(st.tuples(signs, operands), min_size=1, max_size=3),
)
conditions = st.recursive(
    comparisons,
    lambda inner: st.one_of(
        inner.map(lambda held: f"({held})"),
        inner.map(lambda held: f"not {held}"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner, spaces).map(
            lambda parts: f"{parts[0]}{parts[3]}{parts[1]}{parts[3]}{parts[2]}"
        ),
    ),
    max_leaves=8,
)


@given(conditions)
def test_a_condition_means_what_python_means_by_it(text):
    expected = eval(text.replace("@", "_at_").replace("\t", " "), {"__builtins__": {}}, PYTHON)  # noqa: S307  ours

    assert parsed(text).holds(NAMES.__getitem__) is expected


@given(conditions, st.sampled_from(list(NAMES)))
def test_a_condition_is_undefined_only_where_the_undefined_name_can_decide(text, undefined):
    """Whatever number the name had, a verdict that is given without it stays."""
    verdict = parsed(text).holds(lambda name: None if name == undefined else NAMES[name])

    if verdict is not None:
        for value in (-math.inf, 0.25, math.inf):
            assert parsed(text).holds({**NAMES, undefined: value}.__getitem__) is verdict

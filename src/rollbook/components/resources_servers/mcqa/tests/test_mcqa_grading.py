import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources_servers.mcqa.boxed import last_boxed
from resources_servers.mcqa.grading import (
    PATTERN_CHARS,
    GradingMode,
    Question,
    chosen_letter,
    compiled_patterns,
    option_texts,
)

OPTIONS = option_texts([{"A": "red"}, {"B": "dark blue"}, {"C": "blue"}, {"D": "12"}])
STRICT, BOXED, COLON, MARKED = GradingMode


def chosen(text, mode, *, options=None, prefix=None, regex=None):
    return chosen_letter(text, Question(options or OPTIONS, compiled_patterns(regex), prefix), mode)


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        (r"So \boxed{B}", "B"),
        (r"\boxed{A} no, \boxed{C}", "C"),
        (r"\boxed{(B).}", "B"),
        (r"\boxed{ \text{B} }", "B"),
        (r"\boxed{\text{\text{B}: dark blue}}", "B"),
        (r"\boxed{B: dark blue}", "B"),
        (r"\boxed{B)}", "B"),
        (r"\boxed{B. it is}", "B"),
        (r"\boxed {B}", "B"),
        (r"\boxed{B} and then \boxed{C", "B"),
        (r"\boxed{b}", None),
        (r"\boxed{E}", None),
        (r"\boxed{A, B}", None),
        (r"\boxed{dark blue}", None),
        (r"\boxed{B dark blue}", None),
        (r"\boxed{A} \boxed{unsure}", None),
        (r"\boxed{}", None),
        ("B", None),
        ("", None),
        ("  \n ", None),
    ],
)
def test_the_strict_mode_takes_one_letter_from_the_last_box(text, letter):
    assert chosen(text, STRICT) == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        (r"\boxed{A}", "A"),
        (r"\boxed{ReD.}", "A"),
        (r"\boxed{it is  RED, surely}", "A"),
        (r"\boxed{dark blue}", None),
        (r"\boxed{\text{the number 12}}", "D"),
        (r"\boxed{green}", None),
        ("red", None),
    ],
)
def test_the_lenient_box_also_takes_the_one_option_whose_text_it_holds(text, letter):
    assert chosen(text, BOXED) == letter


def test_an_option_without_text_is_in_no_box():
    assert chosen(r"\boxed{red}", BOXED, options={"A": "red", "B": ""}) == "A"


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Answer: B", "B"),
        ("the ANSWER :  b ", "B"),
        ("Answer: blue", "C"),
        ("Answer: Dark   BLUE.", "B"),
        ("Answer: E", None),
        ("Answer: B.", None),
        ("Answer: B\nAnswer: C", "B"),
        ("Answer: who knows\nAnswer: C", None),
        ("B", None),
    ],
)
def test_the_colon_mode_takes_a_letter_or_an_option_text_after_the_first_answer(text, letter):
    assert chosen(text, COLON) == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Answer: B", "B"),
        ("**Answer:** B", "B"),
        ("**Answer: B**", "B"),
        ("*Answer*: __B__", "B"),
        ("Answer: **(b)**", "B"),
        ("Answer: B) dark blue", "B"),
        ("Answer: B. Because A is wrong", "B"),
        ("Answer: the right one is C", "C"),
        ("Answer: I'm sure it's B", "B"),
        ("Answer: A\nHm.\nAnswer: C", "C"),
        ("Answer: A\nAnswer: no idea", "A"),
        ("Answer: A\nAnswer: B or C", "A"),
        ("Answer: A or B", None),
        ("Answer: **A** and **B**", None),
        ("Answer: either a or b", None),
        ("Answer: A, B", None),
        ("Answer: A/B", None),
        ("Answer: B \u2014 C is close", "B"),
        ("Answer: E", None),
        ("Answer: E, or B", None),
        ("Answer: \uff22", "B"),
        ("Answer\uff1a \uff23", "C"),
        ("Answer: \u0628", "B"),
        ("Answer: \u0623", "A"),
        ("Answer: (\u062f)", "D"),
        ("Answer: \u09a1", "C"),
        ("Answer: \u09ac.", "B"),
        ("Answer: \u0628\u062f", None),
        ("Answer: \u09ac\u09be", None),
        ("Answer: blue", None),
        ("myanswer: B", None),
        ("Answer:\nB", None),
        ("", None),
    ],
)
def test_the_marked_mode_takes_the_last_valid_payload(text, letter):
    assert chosen(text, MARKED) == letter


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Antwort: B", "B"),
        ("**Antwort:** B", "B"),
        ("Answer: A\nAntwort: B", "B"),
        ("antwort: c", "C"),
        ("B", None),
    ],
)
def test_the_marked_mode_reads_behind_the_rows_own_prefix(text, letter):
    assert chosen(text, MARKED, prefix="Antwort:") == letter


def test_a_prefix_is_text_and_no_pattern():
    assert chosen("(x+): B", MARKED, prefix="(x+):") == "B"
    assert chosen("xx: B", MARKED, prefix="(x+):") is None


@pytest.mark.parametrize(
    ("regex", "text", "letter"),
    [
        (r"final: (\w)", "Final: b, no, final: d", "D"),
        (r"final: (\w)", "final: z", "Z"),
        (r"final: (\w)", "FINAL: b", "B"),
        (r"final: (.+)", "final: dark blue", "B"),
        (r"final: (.+)", r"final: violet \boxed{A}", "A"),
        (r"final: (?:(\w)!|(\w)\?)", "final: c?", "C"),
        (r"[a-d]$", "it is c", "C"),
        ([r"x: (\w)", r"y: (\w)"], "y: B", "B"),
        ([r"x: (\w)", r"y: (\w)"], "y: B x: A", "A"),
        ("", r"\boxed{A}", "A"),
        (r"final: (\d)", r"final: 7 \boxed{A}", "A"),
    ],
)
def test_a_rows_own_pattern_comes_before_the_mode(regex, text, letter):
    assert chosen(text, STRICT, regex=regex) == letter


def test_a_pattern_sees_the_end_of_a_long_text():
    text = "final: A" + "." * PATTERN_CHARS + "final: B"
    assert chosen(text, STRICT, regex=r"final: (\w)") == "B"
    assert chosen("final: A" + "." * PATTERN_CHARS, STRICT, regex=r"final: (\w)") is None


def test_a_pattern_that_does_not_compile_raises():
    with pytest.raises(re.error):
        compiled_patterns(["(a)", "(b"])


@pytest.mark.parametrize(
    ("text", "content"),
    [
        (r"\boxed{\frac{1}{2}}", r"\frac{1}{2}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{[1, 2\}} or {so}", r"[1, 2\}"),
        (r"\boxed{1} } { \boxed{2}", "2"),
        (r"{ \boxed{2}", "2"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"\boxed{4", None),
        (r"\boxed 4", None),
    ],
)
def test_a_box_ends_at_its_own_brace(text, content):
    assert last_boxed(text) == content


@given(st.text(alphabet=list("\\boxed{}textABC 1.*_:answer\n\u0628\uff22")), st.sampled_from(GradingMode))
def test_no_text_raises_or_names_a_letter_that_is_no_option(text, mode):
    assert chosen(text, mode) in {None, *OPTIONS}


@given(st.text(), st.text(alphabet="ab{}\\"))
def test_a_balanced_box_is_found_whole(before, content):
    box = rf"\boxed{{{content.replace(chr(92), '').replace('{', '').replace('}', '')}}}"
    assert last_boxed(before + " " + box) == box[7:-1]


@pytest.mark.parametrize("mode", GradingMode)
@pytest.mark.parametrize(("before", "part"), [("answer", " "), ("Answer: A", ","), ("Answer:", "*_"), ("", "answer ")])
def test_megabytes_of_anything_are_graded_in_any_mode(mode, before, part):
    text = before + part * (1_000_000 // len(part)) + "xx"
    assert chosen(text, mode, prefix="Antwort:") == ("A" if mode == MARKED and "A," in text else None)


def test_many_open_boxes_are_read_in_one_pass():
    assert last_boxed(r"\boxed{" * 50_000) is None

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from resources_servers.mcqa.grading import GradingMode, Question, chosen_letter, option_texts
from responses_api_models.simulated_model.answers import AnswerBook, Known, known_from
from responses_api_models.simulated_model.chance import Chance, digest_of
from responses_api_models.simulated_model.conversation import Conversation, Turn, from_chat, from_responses
from responses_api_models.simulated_model.policy import Behaviour, answer_to, behaviour_of, wrong_answer
from responses_api_models.simulated_model.settings import PolicySettings
from responses_api_models.simulated_model.wording import Style, style_of, well_formed, without_delimiters
from unit.shelf.calling import example_rows

CHANCE = Chance("root")
OPTIONS = [{"A": "red"}, {"B": "blue"}, {"C": "green"}]


def asked(text, **fields):
    return Conversation((Turn("user", text),), **fields)


def said(text, known, behaviour, others=()):
    return answer_to(asked(text), known, behaviour, CHANCE, others).text


def test_draws_depend_on_their_labels_alone():
    assert Chance("a").share("x") == Chance("a").share("x")
    assert len({Chance(root).share(label) for root in "ab" for label in ("x", "y", 1, "1", (1,))}) == 8
    assert digest_of("ab", "c") != digest_of("a", "bc")


def test_shares_are_spread_evenly():
    shares = [Chance("a").share(number) for number in range(4000)]
    assert all(0 <= share < 1 for share in shares)
    assert sum(share < 0.25 for share in shares) == pytest.approx(1000, abs=90)


def test_a_key_without_weight_is_never_drawn():
    draws = {CHANCE.weighted({"never": 0, "half": 1, "other": 1, "last": 0}, number) for number in range(50)}
    assert draws == {"half", "other"}


@pytest.mark.parametrize(
    ("p_correct", "wrong", "malformed", "refuses"), [(0.7, 8, 1, 1), (0, 1, 1, 2), (1, 0, 0, 0), (0.3, 0, 0, 1)]
)
def test_behaviours_come_at_the_set_rates(p_correct, wrong, malformed, refuses):
    settings = PolicySettings(p_correct=p_correct, wrong=wrong, malformed=malformed, refuses=refuses)
    count = 3000
    drawn = [behaviour_of(settings, Chance(str(number))) for number in range(count)]
    others = wrong + malformed + refuses or 1
    expected = {Behaviour.RIGHT: p_correct} | {
        behaviour: (1 - p_correct) * weight / others
        for behaviour, weight in zip(list(Behaviour)[1:], (wrong, malformed, refuses), strict=True)
    }
    for behaviour, rate in expected.items():
        assert drawn.count(behaviour) / count == pytest.approx(rate, abs=0.03)
        assert rate or behaviour not in drawn


def test_weights_that_leave_nothing_to_do_are_refused():
    with pytest.raises(ValueError, match="give one of them a weight"):
        PolicySettings(p_correct=0.5, wrong=0, malformed=0, refuses=0)


@pytest.mark.parametrize(
    ("instructions", "row_style", "style"),
    [
        (r"put it in \boxed{}", None, Style.BOXED),
        ("use <answer> tags", None, Style.TAG),
        ("end with **Answer:** X", None, Style.COLON),
        ("the answer, please", None, Style.PLAIN),
        (r"put it in \boxed{}", Style.COLON, Style.COLON),
    ],
)
def test_an_answer_takes_the_form_that_is_asked_for(instructions, row_style, style):
    assert style_of(instructions, row_style, Style.PLAIN) == style


@pytest.mark.parametrize(
    ("answer", "bare"),
    [(r"\(\frac12\)", r"\frac12"), ("$5$", "5"), ("$$x$$", "x"), (r"\[y\]", "y"), ("$", "$"), (" 3 ", "3"), ("", "")],
)
def test_a_boxed_answer_loses_its_delimiters(answer, bare):
    assert without_delimiters(answer) == bare
    assert well_formed(Style.BOXED, answer).endswith(f"\\boxed{{{bare}}}")


@pytest.mark.parametrize("mode", GradingMode)
@pytest.mark.parametrize("letter", "ABC")
def test_every_grading_mode_reads_a_right_answer_as_right_and_any_other_as_none(mode, letter):
    known = known_from({"options": OPTIONS, "expected_answer": letter, "grading_mode": mode})
    question = Question(option_texts(OPTIONS))
    read = {kind: chosen_letter(said("Which?", known, kind), question, mode) for kind in Behaviour}
    assert read[Behaviour.RIGHT] == letter
    assert read[Behaviour.WRONG] in set("ABC") - {letter}
    assert (read[Behaviour.MALFORMED], read[Behaviour.REFUSES]) == (None, None)


def test_a_rows_own_prefix_stands_before_its_answer():
    row = {"expected_answer": "B", "grading_mode": "lenient_answer_colon_md"}
    known = known_from(row | {"template_metadata": {"answer_prefix": "Svar:"}})
    assert said("Hvad?", known, Behaviour.RIGHT).endswith("Svar: B")


@given(st.text(max_size=12), st.lists(st.text(max_size=4), max_size=4))
@example("0\x1f", [])
@example("9" * 5000, [])
@example("\u0661", ["\u0661"])
def test_a_wrong_answer_is_never_the_right_one(right, others):
    assert wrong_answer(Known(answer=right), CHANCE, others).strip() != right.strip() or not right.strip()


@pytest.mark.parametrize(
    ("row", "answer"),
    [
        ({"expected_answer": "B"}, "B"),
        ({"answer": "Zoey is a fool"}, "Zoey is a fool"),
        ({"expected_result": 32}, "32"),
        ({"expected_answer": "", "answer": "x"}, ""),
        ({"expected_answer": None, "answer": "x"}, "x"),
        ({"question": "?"}, None),
    ],
)
def test_the_answer_of_a_row_is_found_in_the_field_that_holds_it(row, answer):
    assert known_from(row).answer == answer


def test_a_tag_is_used_where_the_row_comes_from_a_generator_and_the_prompt_asks_for_nothing():
    known = known_from({"answer": "yes", "metadata": {"source_dataset": "x"}})
    assert said("True?", known, Behaviour.RIGHT).endswith("<answer>yes</answer>")


@pytest.mark.parametrize(
    ("observation", "right"),
    [("Your hand: 10, 6 (total: 16).", "hit"), ("Your hand: K, 7 (total: 17).", "stand"), ("Deal me in.", "hit")],
)
def test_a_right_move_stands_from_seventeen_on_and_a_wrong_one_does_the_other(observation, right):
    system = Turn("system", "Say <action>hit</action> or <action>stand</action>.")
    conversation = Conversation((system, Turn("user", observation)))
    other = "stand" if right == "hit" else "hit"
    moves = {kind: answer_to(conversation, None, kind, CHANCE).text for kind in Behaviour}
    assert moves[Behaviour.RIGHT] == f"<action>{right}</action>"
    assert moves[Behaviour.WRONG] == f"<action>{other}</action>"
    assert "</action>" not in moves[Behaviour.MALFORMED] + moves[Behaviour.REFUSES]


@pytest.mark.parametrize("behaviour", Behaviour)
def test_a_prompt_that_nobody_knows_is_answered_too(behaviour):
    assert said("Hello?", None, behaviour)


def test_a_prompt_is_found_however_its_items_spell_it_and_whatever_came_after():
    book = AnswerBook()
    for row in example_rows("mcqa"):
        book.add(row)
    row = example_rows("mcqa")[2]
    text = row["responses_create_params"]["input"][0]["content"]
    spellings = [
        {"input": text},
        {"input": [{"role": "user", "content": text, "type": "message"}]},
        {"input": [{"role": "user", "content": [{"type": "input_text", "text": text}]}]},
        {"input": [{"role": "user", "content": text}, {"role": "assistant", "content": "hm"}]},
    ]
    chat = from_chat({"messages": [{"role": "user", "content": text}]})
    for conversation in [chat, *map(from_responses, spellings)]:
        assert book.find(conversation.turns).answer == row["expected_answer"]
    assert book.find(from_responses({"input": f"x{text}"}).turns) is None
    assert len(book) == 5


def test_a_row_whose_prompt_a_template_makes_is_found_by_its_question():
    book = AnswerBook()
    for question, answer in (("2+2", "4"), ("12+2", "14"), ("", "no")):
        book.add({"question": question, "expected_answer": answer})
    book.add({"responses_create_params": {"input": "What is 2+2 here?"}, "expected_answer": "5"})
    found = {text: book.find((Turn("user", text),)) for text in ("Say: 2+2!", "Say: 12+2!", "What is 2+2 here?", "3+3")}
    assert [known and known.answer for known in found.values()] == ["4", "14", "5", None]
    assert len(book) == 3


def test_a_chat_of_several_turns_reads_as_its_responses_form():
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "7"}
    of_responses = from_responses(
        {"instructions": "Be brief.", "input": [{"role": "user", "content": "x"}, call, result]}
    )
    messages = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "x"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c", "content": "7"},
    ]
    of_chat = from_chat({"messages": messages})
    assert of_chat.turns == of_responses.turns
    assert (of_chat.calls_made, of_chat.last_result, len(of_chat.prompt)) == (1, "7", 2)

import pytest

from resources_servers.instruction_following.app import CHECKS, InstructionFollowingResourcesServer
from resources_servers.instruction_following.reading import divided, sentences
from unit.shelf.calling import built, example_rows, response, served, shared_rows

NAME = "instruction_following"
ROWS = example_rows(NAME)
KEPT = [
    "Rivers carry salts from rocks to the sea and the sun takes the water away. That is all.",
    "<<for the mountains>>\n* boots\n* rope\n* map\n* socks\n* bread",
    "Morning on the quay. A rope lies there.\n\nGulls cry.\n\nAnother rope is thrown at night.",
    '```json\n{"height": 31, "lamps": ["white", "red"]}\n```',
    "there was a cat in the hall\n******\na cat that was rather too small",
]


def row(*constraints, **fields):
    names = [name for name, _ in constraints]
    return {
        **ROWS[0],
        "verifier_metadata": {"instruction_id_list": names, "kwargs": [given for _, given in constraints]} | fields,
    }


async def verified(row, text):
    async with served(built(InstructionFollowingResourcesServer)) as server:
        return await server.ok("/verify", {**row, "response": response(text)})


def keeps(name, text, **options):
    return CHECKS[name](text, options)


@pytest.mark.parametrize("number", range(len(ROWS)))
async def test_a_response_that_keeps_every_constraint_is_worth_one_and_an_empty_one_nothing(number):
    reply = await verified(ROWS[number], KEPT[number])
    assert (reply["reward"], reply["follow_all_instructions"]) == (1.0, True), reply["follow_instruction_list"]
    assert (await verified(ROWS[number], " "))["reward"] == 0.0


async def test_the_constraints_of_shared_rows_are_known():
    for shared in shared_rows(NAME):
        reply = await verified(shared, "Well.")
        assert (reply["mask_sample"], reply["reward"]) == (False, 0.0)
        assert len(reply["follow_instruction_list"]) == len(shared["instruction_id_list"])


async def test_in_fraction_mode_the_reward_is_the_share_that_is_kept():
    both = [("punctuation:no_comma", None), ("startend:quotation", {})]
    assert (await verified(row(*both, grading_mode="fraction"), "a"))["reward"] == 0.5
    assert (await verified(row(*both), "a"))["reward"] == 0.0


async def test_constraints_may_stand_at_the_top_of_a_row_and_options_that_are_null_are_none():
    old = {
        "responses_create_params": ROWS[0]["responses_create_params"],
        "instruction_id_list": ["keywords:existence", "combination:repeat_prompt"],
        "kwargs": [{"keywords": ["rope"], "num_words": None}, {"prompt_to_repeat": None}],
        "prompt": "Say rope.",
    }
    reply = await verified(old, "say rope. Rope!")
    assert (reply["reward"], reply["follow_instruction_list"]) == (1.0, [True, True])


@pytest.mark.parametrize(
    ("constraint", "said"),
    [
        (("format:rhyme", {}), "no constraint 'format:rhyme'"),
        (("keywords:frequency", {"keyword": "a"}), "KeyError"),
        (("keywords:frequency", {"keyword": "a", "frequency": 1, "relation": "about"}), "KeyError('about')"),
        (("length_constraints:number_words", {"num_words": "many", "relation": "at least"}), "ValueError"),
        (("keywords:existence", {"keywords": 5}), "TypeError"),
    ],
)
async def test_a_row_whose_constraint_cannot_be_checked_is_masked(constraint, said):
    reply = await verified(row(constraint), "text")
    assert (reply["reward"], reply["mask_sample"], reply["failure_kind"]) == (0.0, True, "verifier_error")
    assert said in reply["failure_reason"]


async def test_a_row_with_more_constraints_than_options_is_masked():
    reply = await verified(row(("punctuation:no_comma", {}), kwargs=[]), "text")
    assert reply["mask_sample"]


async def test_a_mode_that_does_not_exist_is_refused():
    async with served(built(InstructionFollowingResourcesServer)) as server:
        body = {**row(("punctuation:no_comma", {}), grading_mode="loud"), "response": response("x")}
        assert (await server.post("/verify", body)).status == 422


async def test_only_the_last_item_is_read():
    async with served(built(InstructionFollowingResourcesServer)) as server:
        body = {**row(("punctuation:no_comma", {})), "response": response("a, b", "c")}
        assert (await server.ok("/verify", body))["reward"] == 1.0


TABLE = [
    ("keywords:existence", {"keywords": ["rope", "sea"]}, "Ropes at SEA", "a rope"),
    ("keywords:frequency", {"keyword": "a", "frequency": 2, "relation": "less than"}, "a", "a a"),
    ("keywords:forbidden_words", {"forbidden_words": ["ship"]}, "shipyard", "a Ship."),
    ("keywords:letter_frequency", {"letter": "q", "let_frequency": 2, "let_relation": "at least"}, "Qq", "q"),
    ("keywords:word_once", {"keyword": "rope"}, "a Rope", "rope rope"),
    ("keywords:word_count_different_numbers", {"keyword": "x", "frequency": 2, "relation": "exactly"}, "x x", "x"),
    ("keywords:exclude_word_harder", {"keyword": "rope"}, "ropes", "a rope is"),
    ("keywords:no_adjacent_consecutive", {}, "big apple day", "apple big"),
    ("keywords:palindrome", {}, "a Level field", "a b"),
    ("keywords:keyword_specific_position", {"keyword": "sea", "n": 2, "m": 3}, "One. At the sea, now.", "At the sea."),
    ("keywords:start_end", {}, "Sea is the sea.", "sea is"),
    ("letters:letter_counting", {"N": 3, "relation": "at least"}, "abc", "a1b2"),
    ("letters:letter_counting2", {"letter": "a", "let_frequency": 1, "let_relation": "less than"}, "b", "A"),
    ("count:lowercase_counting", {"N": 1}, "One two", "one two"),
    ("count:count_unique", {}, "one two", "One one"),
    ("count:count_increment_word", {"keyword1": "a", "keyword2": "b"}, "a b b", "a b"),
    ("length_constraints:number_sentences", {"num_sentences": 2, "relation": "exactly"}, "A b. C d!", "A b."),
    ("length_constraints:number_words", {"num_words": 2, "relation": "more than"}, "a b c", "a b"),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 2}, "a\n***\nb", "a\n***\n***\nb"),
    (
        "length_constraints:nth_paragraph_first_word",
        {"num_paragraphs": 2, "nth_paragraph": 2, "first_word": "So"},
        'a\n\n"so, b',
        "a\n\nb so",
    ),
    ("paragraphs:paragraphs", {}, "a *** b", "a"),
    ("paragraphs:paragraphs2", {}, "a\n\nb", "a\n\nb\n\nc"),
    ("detectable_content:postscript", {"postscript_marker": "P.S."}, "a\nP.S. b", "a PS b"),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"}, "a\nP. P. S b", "P.S. b"),
    ("detectable_content:number_placeholders", {"num_placeholders": 2}, "[a] [b c]", "[a] [b"),
    ("count:counting_composition", {"n_sent": 1, "n_words": 2}, "a b.***c d.***e f.", "a b.***c d."),
    ("first_word:first_word_answer", {"first_word": "so"}, "So, a", "a so"),
    ("first_word:first_word_sent", {"first_word": "so"}, "So a. So b!", "So a. B so."),
    ("last_word:last_word_answer", {"last_word": "end"}, "the END.", "end the"),
    ("last_word:last_word_sent", {"last_word": "end"}, "A end. B end!", "A end. B."),
    ("startend:end_checker", {"end_phrase": "Bye now"}, 'x bye now"', "bye now x"),
    ("startend:quotation", {}, ' "a" ', '"'),
    ("detectable_format:number_bullet_lists", {"num_bullets": 2}, "* a\n- b", "* a\n** b"),
    ("detectable_format:constrained_response", {}, "So: My answer is maybe.", "maybe"),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2}, "*a* and **b**", "*a* **"),
    (
        "detectable_format:multiple_sections",
        {"section_spliter": "Part", "num_sections": 2},
        "Part 1 a Part 2 b",
        "Part 1",
    ),
    ("detectable_format:json_format", {}, "```JSON\n[1]\n```", "[1] so"),
    ("detectable_format:title", {}, "<<a b>>\nc", "<< >>"),
    ("detectable_format:sentence_hyphens", {}, "One is here-two is there", "One. Two."),
    ("detectable_format:square_brackets", {}, "[a] [b]", "[a] b"),
    ("detectable_format:bigram_wrapping", {}, "<<a b>> <<c d>> e", "<<a b c d>>"),
    ("combination:two_responses", {}, "a******b", "a******a"),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Do it."}, " do it. Done.", "Done. Do it."),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": "at least"}, "AB, CD", "AB Cd"),
    ("change_case:english_capital", {}, "A B 1", "A b"),
    ("change_case:english_lowercase", {}, "a b 1", "a B"),
    ("punctuation:no_comma", {}, "a", "a,"),
    ("punctuation:punctuation_dot", {}, "a", "a."),
    ("punctuation:punctuation_exclamation", {}, "a", "a!"),
    ("copy:copy", {"prompt_to_repeat": "Do it."}, " do it. ", "do it. x"),
    ("copy:copying_simple", {"prompt_to_repeat": "Do it."}, "Do it.", "x"),
    ("copy:copying_multiple", {"prompt_to_repeat": "a", "N": 2}, "a\n******\nA", "a"),
    ("copy:copy_span_idx", {"prompt_to_repeat": "abcdef", "n_start": 1, "n_end": 3}, "bc", "abc"),
    (
        "copy:repeat_phrase",
        {"phrase": "the big red dog", "small_n": 2},
        "The big red dog, the big blue dog",
        "the big red dog",
    ),
]


@pytest.mark.parametrize(("name", "options", "right", "wrong"), TABLE, ids=[name for name, *_ in TABLE])
def test_a_constraint_tells_a_text_that_keeps_it_from_one_that_does_not(name, options, right, wrong):
    assert (keeps(name, right, **options), keeps(name, wrong, **options)) == (True, False)


def test_every_constraint_is_in_the_table_but_the_one_on_languages():
    assert {name for name, *_ in TABLE} == set(CHECKS) - {"language:response_language"}


@pytest.mark.parametrize(
    ("text", "kept"), [("This is written in English words.", True), ("Das ist kein Englisch.", False), ("1", True)]
)
def test_the_language_of_a_text_is_found_where_the_package_is_there(text, kept):
    pytest.importorskip("langdetect")
    assert keeps("language:response_language", text, language="en") is kept


async def test_without_the_package_a_row_on_languages_is_masked_and_says_what_to_install(monkeypatch):
    monkeypatch.setattr("resources_servers.instruction_following.languages.find_spec", lambda _: None)
    reply = await verified(row(("language:response_language", {"language": "en"})), "text")
    assert (reply["mask_sample"], "pip install langdetect" in reply["failure_reason"]) == (True, True)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("One. Two! Three?", 3),
        ("Dr. Who met J. Smith. They left.", 2),
        ("It cost 3.50 at 5 p.m. today.", 1),
        ('He said "Stop." Then he left.', 2),
        ("a title\n\na text", 2),
        ("\u4f60\u597d\u3002 \u518d\u89c1\u3002", 2),
        ("", 0),
    ],
)
def test_sentences_end_where_a_reader_ends_them(text, count):
    assert len(sentences(text)) == count


def test_millions_of_initials_are_one_sentence():
    assert [len(sentence) for sentence in sentences("A. " * 1_000_000)] == [2_999_999]


def test_an_empty_part_between_dividers_makes_no_paragraphs():
    assert (divided("a *** *** b"), divided("*** a *** b ***")) == (None, ["a", "b"])


@pytest.mark.parametrize("part", ["*", "a.", "[", "<<", "- ", '"', "***", "\n\n", "[" * 50])
def test_megabytes_of_anything_are_checked(part):
    text = part * (200_000 // len(part))
    for name, options, *_ in TABLE:
        assert keeps(name, text, **options) in {True, False}


async def test_a_saved_result_can_be_verified_again():
    assert (await verified(await verified(ROWS[0], "a,"), KEPT[0]))["reward"] == 1.0

import json

import pytest

from resources_servers.hotpotqa_qa.alternatives import is_said, is_said_strictly, ways
from resources_servers.hotpotqa_qa.app import HotpotQAResourcesServer, extracted
from resources_servers.hotpotqa_qa.f1 import exact_match, f1
from resources_servers.hotpotqa_qa.reliability import why_unreliable
from unit.shelf.calling import built, example_rows, response, served, shared_rows

NAME = "hotpotqa_qa"
ROW = example_rows(NAME)[0]


def saying(answer):
    return json.dumps({"answer": answer})


async def verified(row, text):
    async with served(built(HotpotQAResourcesServer)) as server:
        return await server.ok("/verify", {**row, "response": response(text)})


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_the_expected_answer_is_worth_one_and_another_nothing(read):
    for row in read(NAME):
        assert (await verified(row, saying(row["expected_answer"])))["reward"] == 1.0
        assert (await verified(row, saying("xyzzy")))["reward"] == 0.0


async def test_the_reply_has_every_score_and_can_be_verified_again():
    row = {**ROW, "expected_answer": "John Ronald Smith"}
    reply = await verified(row, saying("Smith"))
    scores = [reply[key] for key in ("reward", "answer_em", "answer_f1", "is_correct", "is_correct_strict")]
    assert scores == [0.0, 0.0, 0.5, 0.0, 0.0]
    assert (reply["gt_should_remove"], reply["gt_remove_reason"]) == (True, "multi_word_name")
    assert (await verified(reply, saying("john ronald smith")))["reward"] == 1.0


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ('So: {"answer": "no"} {"answer": "yes"} {"x": 1}', "yes"),
        ('```json\n{"x": 1, "answer": 5}\n```', "5"),
        ('{"answer": "ye', '{"answer": "ye'),
        ("{'answer': 'yes'}", "{'answer': 'yes'}"),
        (" yes ", "yes"),
        ('{"answer": ""}', None),
        ("", None),
        ("{" * 100_000, "{" * 100_000),
    ],
)
def test_the_last_object_with_an_answer_gives_it_and_else_the_whole_text(text, answer):
    assert extracted(text) == answer


@pytest.mark.parametrize(
    ("answer", "expected", "same", "share"),
    [
        ("beatles", "The Beatles", 1, 1),
        ("US", "U.S.", 1, 1),
        ("New York", "New York City", 0, 0.8),
        ("b c d", "a b c", 0, 0.8),
        ("yes it is", "yes", 0, 0),
        ("John Smith", "Smith, John", 0, 1),
        ("cafe", "caf\u00e9", 0, 0),
        ("", "x", 0, 0),
    ],
)
def test_words_are_compared_without_articles_and_punctuation(answer, expected, same, share):
    assert (exact_match(answer, expected), f1(answer, expected)) == (same, pytest.approx(share))


@pytest.mark.parametrize(
    ("expected", "answer"),
    [
        ("Paris", "The capital is PARIS."),
        ("Foo (bar) baz", "foo baz"),
        ("Foo (bar) baz", "foo bar baz"),
        ("Foo (bar)", "the bar"),
        ("the Beatles", "Beatles"),
        ("five", "5"),
        ("5", "five years"),
        ("1st", "first"),
        ("1,000 men", "1000 men"),
        ("Ph.D.", "PhD"),
        ("rock & roll", "rock and roll"),
        ("Tom and Jerry", "Tom & Jerry"),
        ("well-known", "well known"),
        ("\u201cFoo\u201d", "Foo"),
        ("Foo\u2014Bar", "Foo-Bar"),
        ("Foo?", "Foo"),
    ],
)
def test_an_answer_may_be_written_in_other_ways(expected, answer):
    assert is_said_strictly(answer, expected)


@pytest.mark.parametrize(
    ("expected", "answer"),
    [("U.S.", "US"), ("Foo's", "Foos"), ("twenty-five", "25"), ("Foo, Bar", "Foo"), ("", "x"), ("100 m", "100m")],
)
def test_other_ways_of_writing_are_others(expected, answer):
    assert not is_said(answer, expected)


@pytest.mark.parametrize(
    ("expected", "answer", "strict"),
    [
        ("no", "I know", False),
        ("no", "no, never", True),
        ("1990", "1990s", False),
        ("abcd", "x-abcd", True),
        ("abcd", "x_abcd", False),
        ("Paris", "Parisian", True),
        ("Paris", "x" * 75 + "Paris", True),
        ("Paris", "x" * 76 + "Paris", False),
        ("Paris", "x" * 40 + "Paris" + "y" * 300, True),
        ("Paris", "x" * 41 + "Paris" + "y" * 300, False),
    ],
)
def test_strictly_a_short_answer_is_a_word_and_a_long_text_says_it_early(expected, answer, strict):
    assert is_said(answer, expected)
    assert is_said_strictly(answer, expected) is strict


def test_a_way_of_writing_shorter_than_three_letters_is_none_unless_it_is_what_is_expected():
    assert ways("U.K.") == ["u.k.", "u.k"]
    assert ways("a") == ["a"]
    assert ways("6") == ["6", "six"]


@pytest.mark.parametrize(
    ("expected", "reason"),
    [
        ("x" * 40, ""),
        ("x" * 41, "gt_too_long"),
        ("John Smith", ""),
        ("Henry J. Kaiser", "multi_word_name"),
        ("John smith Doe", ""),
        ("University of Oxford Press", ""),
        ("the House of the Rising Sun", "multi_word_name"),
        ("Foo Bar baz qux quux", ""),
        ("House of Cards Season One Two Three", ""),
        ("", ""),
    ],
)
def test_long_answers_and_names_of_several_words_are_unreliable(expected, reason):
    assert why_unreliable(expected) == reason


async def test_metrics_are_told_once_more_of_the_reliable_tasks():
    server = built(HotpotQAResourcesServer)
    zero = dict.fromkeys(("answer_em", "answer_f1", "is_correct", "is_correct_strict"), 0.0)
    tasks = [
        [{"is_correct_strict": 1.0, "extracted_answer": "a"}],
        [{**zero, "extracted_answer": None, "gt_should_remove": True}],
    ]
    metrics = server.compute_metrics(tasks)
    assert (metrics["pass@1/is_correct_strict"], metrics["filtered_pass@1/is_correct_strict"]) == (50.0, 100.0)
    assert (metrics["unfiltered_num_tasks"], metrics["filtered_num_tasks"]) == (2, 1)
    assert metrics["pass@1/no_answer"] == 50.0
    key = server.get_key_metrics(metrics)
    assert key["filtered_pass@1[avg-of-1]/is_correct_strict"] == 100.0
    assert not any("no_answer" in name for name in key)


def test_no_tasks_have_counts_alone():
    assert built(HotpotQAResourcesServer).compute_metrics([]) == {"filtered_num_tasks": 0, "unfiltered_num_tasks": 0}


@pytest.mark.parametrize("part", ["(", "()", "a ", "{", '{"answer":"x"}', ".", "1,000"])
async def test_megabytes_of_anything_are_judged(part):
    assert (await verified({**ROW, "expected_answer": "xyz"}, part * (1_000_000 // len(part))))["reward"] == 0.0


async def test_half_a_character_in_an_answer_is_judged_like_any_other_text():
    reply = await verified(ROW, '{"answer": "\\ud800"}')
    assert (reply["reward"], reply["extracted_answer"]) == (0.0, "\ufffd")

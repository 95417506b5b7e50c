"""Verifier fixtures: what a verifier must do with its own cases, and how a breach is told."""

import itertools
import json

import pytest
from pydantic import BaseModel

from rollbook.errors import VerifierFixtureError
from rollbook.servers.kinds.verifier_exercise import exercise_verifier_fixture
from rollbook.servers.kinds.verifier_fixture import CaseKind, VerifierFixture, read_cases

FULL = {"name": "right", "kind": "full_reward", "request": {"answer": "4"}, "expected_reward": 1.0}
ZERO = {"name": "wrong", "kind": "zero_reward", "request": {"answer": "5"}, "expected_reward": 0}
MALFORMED = {"name": "no answer", "kind": "malformed", "request": {}, "expected_error": "answer"}
SAME = {"name": "again", "kind": "determinism", "request": {"answer": "4"}, "expected_reward": 1}
CASES = (FULL, ZERO, MALFORMED)


class Request(BaseModel):
    answer: str


class Answer(BaseModel):
    reward: float


class Verifier:
    rewards = ("4", 1.0, 0.0)

    async def verify(self, body):
        right, full, none = self.rewards
        return Answer(reward=full if body.answer == right else none)


@pytest.fixture
def exercise(tmp_path):
    async def exercised(cases=CASES, verifier=Verifier, *, invoke=None, reseed=None, **options):
        path = tmp_path / "cases.jsonl"
        path.write_text("".join(f"{json.dumps(case)}\n" for case in cases), encoding="utf-8")
        fixture = VerifierFixture(verifier, Request, path, invoke=invoke, reseed=reseed)
        return await exercise_verifier_fixture(fixture, **({"reward_range": (0.0, 1.0)} | options))

    return exercised


async def test_every_case_is_asked_in_order_and_told(exercise):
    results = await exercise([*CASES, SAME], determinism="seeded")
    assert [(result.name, result.kind, result.observed_rewards) for result in results] == [
        ("right", "full_reward", (1.0,)),
        ("wrong", "zero_reward", (0.0,)),
        ("no answer", "malformed", ()),
        ("again", "determinism", (1.0, 1.0)),
    ]
    assert "Field required" in results[2].observed_error


@pytest.mark.parametrize("left_out", ["full_reward", "zero_reward", "malformed"])
async def test_a_kind_of_case_that_every_verifier_needs_is_asked_for(exercise, left_out):
    with pytest.raises(VerifierFixtureError, match=f"no case of kind '{left_out}'"):
        await exercise([case for case in CASES if case["kind"] != left_out])


@pytest.mark.parametrize("determinism", ["stochastic", "unknown"])
async def test_only_a_seeded_verifier_needs_a_case_of_determinism(exercise, determinism):
    assert len(await exercise(determinism=determinism)) == 3
    with pytest.raises(VerifierFixtureError, match="no case of kind 'determinism'"):
        await exercise(determinism="seeded")


async def test_a_reward_that_is_not_the_expected_one_is_told_with_the_case(exercise):
    with pytest.raises(VerifierFixtureError, match=r"full_reward case 'right': the reward was to be 0\.5"):
        await exercise([{**FULL, "expected_reward": 0.5}, ZERO, MALFORMED])


async def test_full_and_zero_reward_are_the_ends_of_the_range(exercise):
    with pytest.raises(VerifierFixtureError, match=r"that of every full_reward case is 2\.0, an end of the range"):
        await exercise(reward_range=(0.0, 2.0))


async def test_where_less_is_better_full_reward_is_the_low_end(exercise):
    class Golf(Verifier):
        rewards = ("4", -10.0, 3.0)

    cases = [{**FULL, "expected_reward": -10}, {**ZERO, "expected_reward": 3}, MALFORMED]
    assert len(await exercise(cases, Golf, reward_range=(-10, 3), higher_is_better=False)) == 3
    with pytest.raises(VerifierFixtureError, match="an end of the range"):
        await exercise(cases, Golf, reward_range=(-10, 3))


@pytest.mark.parametrize("reward", [1.5, float("nan"), float("inf")])
async def test_a_reward_outside_of_the_range_is_refused(exercise, reward):
    class Odd(Verifier):
        rewards = ("4", reward, 0.0)

    with pytest.raises(VerifierFixtureError, match=r"outside of the range 0\.0 to 1\.0"):
        await exercise(CASES, Odd)


async def test_a_malformed_request_that_is_scored_is_a_breach(exercise):
    with pytest.raises(VerifierFixtureError, match=r"it was to raise, and was given the reward 1\.0"):
        await exercise([FULL, ZERO, {**MALFORMED, "request": {"answer": "4"}}])


async def test_a_malformed_request_must_raise_what_the_case_says(exercise):
    with pytest.raises(VerifierFixtureError, match="the error was to say 'flavour', and says"):
        await exercise([FULL, ZERO, {**MALFORMED, "expected_error": "flavour"}])


async def test_a_verifier_that_raises_on_a_good_request_is_a_breach(exercise):
    class Broken(Verifier):
        async def verify(self, body):
            raise RuntimeError("no teal today")

    with pytest.raises(VerifierFixtureError, match=r"full_reward case 'right': the verifier raised: no teal today"):
        await exercise(CASES, Broken)


async def test_an_answer_without_a_reward_is_a_breach(exercise):
    with pytest.raises(VerifierFixtureError, match="the verifier gave no reward but 'yes'"):
        await exercise(invoke=lambda _server, _request: "yes")


async def test_everything_that_is_wrong_is_told_at_once(exercise):
    with pytest.raises(VerifierFixtureError) as raised:
        await exercise([{**FULL, "expected_reward": 0}, {**ZERO, "expected_reward": 1}, MALFORMED])
    assert "'right'" in str(raised.value)
    assert "'wrong'" in str(raised.value)


async def test_a_reward_that_differs_on_a_fresh_server_is_no_determinism(exercise):
    drawn = itertools.count()

    class Dice(Verifier):
        async def verify(self, body):
            return Answer(reward=next(drawn) % 2 if body.answer == "4" else 0)

    cases = [ZERO, MALFORMED, SAME, {**FULL, "name": "third"}]
    with pytest.raises(VerifierFixtureError, match=r"the same request had the rewards 0\.0, 1\.0"):
        await exercise(cases, Dice, determinism="seeded")


async def test_a_generator_of_the_process_is_seeded_before_every_request(exercise):
    state = {"drawn": 0}

    class Drawing(Verifier):
        async def verify(self, body):
            state["drawn"] += 1
            return Answer(reward=1 if body.answer == "4" and state["drawn"] == 1 else 0)

    results = await exercise([*CASES, SAME], Drawing, determinism="seeded", reseed=lambda: state.update(drawn=0))
    assert results[3].observed_rewards == (1.0, 1.0)


async def test_every_request_has_a_server_of_its_own(exercise):
    built = []

    class Counted(Verifier):
        def __init__(self):
            built.append(self)

    await exercise([*CASES, SAME], Counted)
    assert len(built) == 5


async def test_a_fixture_may_ask_its_server_in_its_own_way(exercise):
    async def invoke(server, request):
        return (await server.verify(request)).reward

    assert [result.observed_rewards for result in await exercise(invoke=invoke)] == [(1.0,), (0.0,), ()]


async def test_expected_ends_are_written_from_what_was_seen(exercise, tmp_path):
    bare = [{key: value for key, value in case.items() if not key.startswith("expected")} for case in CASES]
    await exercise(bare, update_expected=True)
    full, zero, malformed = read_cases(tmp_path / "cases.jsonl")
    assert (full.expected_reward, zero.expected_reward, malformed.kind) == (1.0, 0.0, CaseKind.MALFORMED)
    assert "Field required" in malformed.expected_error
    assert [full.request, zero.request] == [FULL["request"], ZERO["request"]]


async def test_error_text_that_still_fits_is_not_replaced_by_longer_text(exercise, tmp_path):
    await exercise(update_expected=True)
    assert read_cases(tmp_path / "cases.jsonl")[2].expected_error == "answer"


async def test_ends_of_the_range_are_not_updated_away(exercise, tmp_path):
    with pytest.raises(VerifierFixtureError, match="an end of the range"):
        await exercise(reward_range=(0, 2), update_expected=True)
    assert read_cases(tmp_path / "cases.jsonl")[0].expected_reward == 1.0


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "no JSON"),
        (
            '{"name": "a", "kind": "full_reward", "request": {}, "expected_error": "x"}',
            "a full_reward case expects expected_reward",
        ),
        (
            '{"name": "a", "kind": "malformed", "request": {}, "expected_reward": 1}',
            "a malformed case expects expected_error",
        ),
        ('{"name": "a", "kind": "half_reward", "request": {}}', "kind: Input should be"),
        ('{"name": "a", "kind": "malformed", "request": {}, "colour": 1}', "colour: Extra inputs"),
    ],
)
def test_a_line_that_is_no_case_is_told_with_its_number(tmp_path, line, told):
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{json.dumps(FULL)}\n\n{line}\n", encoding="utf-8")
    with pytest.raises(VerifierFixtureError, match=rf"cases\.jsonl:3: .*{told}"):
        read_cases(path)


def test_two_cases_of_one_name_are_refused(tmp_path):
    path = tmp_path / "cases.jsonl"
    path.write_text(f"{json.dumps(FULL)}\n{json.dumps(FULL)}\n", encoding="utf-8")
    with pytest.raises(VerifierFixtureError, match="several cases are named 'right'"):
        read_cases(path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(VerifierFixtureError, match=r"nowhere\.jsonl: the cases cannot be read: No such file"):
        read_cases(tmp_path / "nowhere.jsonl")

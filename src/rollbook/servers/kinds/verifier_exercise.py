"""Whether a verifier gives the rewards that its fixture says: every case on a server of its own.

Rules:
* Full reward is one end of the range and no reward the other: a verifier that cannot reach them has another range.
* A malformed request must raise; a verifier that scores it would score a broken rollout.
* Everything that is wrong is told at once, case by case.
* With `update_expected` the file is written anew with what was seen; the ends of the range are checked all the same.

Source: servers.md §8.12.
"""

import asyncio
import inspect
import math
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeVar

from pydantic import BaseModel

from rollbook.errors import VerifierFixtureError
from rollbook.servers.kinds.verifier_fixture import CaseKind, VerifierCase, VerifierFixture, read_cases, write_cases

Determinism = Literal["seeded", "stochastic", "unknown"]
_REQUIRED: Final = (CaseKind.FULL_REWARD, CaseKind.ZERO_REWARD, CaseKind.MALFORMED)
_REPEATS: Final = 2
Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class VerifierCaseResult:
    """What came of one case: its rewards, two for a determinism case, or the text of the error that was raised."""

    name: str
    kind: CaseKind
    observed_rewards: tuple[float, ...] = ()
    observed_error: str | None = None


@dataclass(frozen=True, slots=True)
class _Scale:
    low: float
    high: float
    higher_is_better: bool

    def holds(self, reward: float) -> bool:
        return math.isfinite(reward) and self.low <= reward <= self.high

    def pinned(self, kind: CaseKind) -> float | None:
        """Return the reward that every case of a kind has."""
        if kind not in {CaseKind.FULL_REWARD, CaseKind.ZERO_REWARD}:
            return None
        return self.high if (kind is CaseKind.FULL_REWARD) == self.higher_is_better else self.low


async def exercise_verifier_fixture(
    fixture: VerifierFixture,
    *,
    reward_range: Sequence[float],
    higher_is_better: bool = True,
    determinism: Determinism = "unknown",
    update_expected: bool = False,
) -> list[VerifierCaseResult]:
    """Ask a fixture's verifier every case and return what came of them, in the file's order.

    `reward_range` is (lowest, highest); `determinism` is `seeded` when the same request always has the same reward.

    Raises:
        VerifierFixtureError: a file that cannot be read, a kind of case that is missing, or a verifier that does not do
            what a case says.

    """
    low, high = reward_range
    scale = _Scale(low, high, higher_is_better)
    cases = read_cases(fixture.cases_path)
    _refuse(fixture, _missing(cases, determinism))
    results = [await _exercised(fixture, case) for case in cases]
    if update_expected:
        cases = [_as_observed(case, result) for case, result in zip(cases, results, strict=True)]
    _refuse(fixture, [wrong for pair in zip(cases, results, strict=True) for wrong in _breaches(*pair, scale)])
    if update_expected:
        write_cases(fixture.cases_path, cases)
    return results


def _refuse(fixture: VerifierFixture, wrong: Sequence[str]) -> None:
    if wrong:
        raise VerifierFixtureError("\n".join(f"{fixture.cases_path}: {line}" for line in wrong))


def _missing(cases: Sequence[VerifierCase], determinism: Determinism) -> list[str]:
    required = [*_REQUIRED, *([CaseKind.DETERMINISM] if determinism == "seeded" else [])]
    there = {case.kind for case in cases}
    return [f"no case of kind {kind.value!r}; add one" for kind in required if kind not in there]


async def _exercised(fixture: VerifierFixture, case: VerifierCase) -> VerifierCaseResult:
    times = _REPEATS if case.kind is CaseKind.DETERMINISM else 1
    rewards: list[float] = []
    for _ in range(times):
        seen = await reward_or_error(fixture, case.request)
        if isinstance(seen, str):
            return VerifierCaseResult(case.name, case.kind, tuple(rewards), seen)
        rewards.append(seen)
    return VerifierCaseResult(case.name, case.kind, tuple(rewards))


async def reward_or_error(fixture: VerifierFixture, request: Mapping[str, Any]) -> float | str:
    """Return the reward that a fresh verifier gives a request, or what it said when it raised."""
    seen = await given_or_raised(_reward(fixture, request))
    if isinstance(seen, SystemExit):
        return f"SystemExit: {seen}; a verifier is not to leave the process"
    return (str(seen) or type(seen).__name__) if isinstance(seen, BaseException) else seen


async def given_or_raised(asked: Awaitable[Given]) -> Given | BaseException:
    """Return what somebody's code gives, or what it raised; to leave the process is to raise."""
    [seen] = await asyncio.gather(_kept_here(asked), return_exceptions=True)
    return seen


async def _kept_here(asked: Awaitable[Given]) -> Given | SystemExit:
    try:
        return await asked
    except SystemExit as left:
        return left  # raised in a task, it would end the event loop, and with it the command


async def _reward(fixture: VerifierFixture, told: Mapping[str, Any]) -> float:
    server = fixture.server_factory()
    if fixture.reseed is not None:
        fixture.reseed()
    request = fixture.request_model.model_validate(told)
    answer = server.verify(request) if fixture.invoke is None else fixture.invoke(server, request)
    return _number(await answer if inspect.isawaitable(answer) else answer)


def _number(answer: Any) -> float:
    reward = getattr(answer, "reward", None) if isinstance(answer, BaseModel) else answer
    if isinstance(reward, bool) or not isinstance(reward, (int, float)):
        raise TypeError(f"the verifier gave no reward but {reward!r}")
    return float(reward)


def _as_observed(case: VerifierCase, result: VerifierCaseResult) -> VerifierCase:
    if case.kind is CaseKind.MALFORMED:
        kept = (
            case.expected_error
            if case.expected_error and case.expected_error in (result.observed_error or "")
            else None
        )
        return case.model_copy(update={"expected_error": kept or result.observed_error})
    return case.model_copy(update={"expected_reward": next(iter(result.observed_rewards), None)})


def _breaches(case: VerifierCase, result: VerifierCaseResult, scale: _Scale) -> list[str]:
    found = (
        _malformed_breaches(case, result) if case.kind is CaseKind.MALFORMED else _reward_breaches(case, result, scale)
    )
    return [f"{case.kind} case {case.name!r}: {wrong}" for wrong in found]


def _malformed_breaches(case: VerifierCase, result: VerifierCaseResult) -> list[str]:
    if result.observed_error is None:
        return [f"it was to raise, and was given the reward {result.observed_rewards[0]}"]
    if case.expected_error is None:
        return [f"it says no `expected_error`; the verifier raised: {result.observed_error}"]
    if case.expected_error not in result.observed_error:
        return [f"the error was to say {case.expected_error!r}, and says: {result.observed_error}"]
    return []


def _reward_breaches(case: VerifierCase, result: VerifierCaseResult, scale: _Scale) -> list[str]:
    if result.observed_error is not None:
        return [f"the verifier raised: {result.observed_error}"]
    rewards, expected, pinned = result.observed_rewards, case.expected_reward, scale.pinned(case.kind)
    found = [
        f"the reward {reward} is outside of the range {scale.low} to {scale.high}"
        for reward in rewards
        if not scale.holds(reward)
    ]
    if len(set(rewards)) > 1:
        found.append(f"the same request had the rewards {', '.join(map(str, rewards))}")
    if expected is None:
        found.append(f"it says no `expected_reward`; the verifier gave {rewards[0]}")
    elif not math.isclose(rewards[0], expected, abs_tol=1e-9):
        found.append(f"the reward was to be {expected}, and is {rewards[0]}")
    if pinned is not None and rewards[0] != pinned:
        found.append(f"its reward is {rewards[0]}; that of every {case.kind} case is {pinned}, an end of the range")
    return found

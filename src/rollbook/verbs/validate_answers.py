"""Whether a verifier tells good answers from none: the cases of its fixture, and the gold answers of its rows.

Rules:
* Nothing is served: a fixture builds a verifier, and it is asked in this process.
* A row's gold answer must have the best reward; an empty answer must lie in the worse half of the range.
* An environment that offers no way to ask is told as not checked.

Source: servers.md §8.12. The hook `gold_answer` is documented in docs/making.md.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from rollbook.errors import MissingPackageError, RollbookError
from rollbook.records.json_values import JsonObject
from rollbook.records.source import SourceRow
from rollbook.servers.kinds.verifier_exercise import given_or_raised, reward_or_error
from rollbook.servers.kinds.verifier_fixture import VerifierFixture
from rollbook.verbs.answer_forms import verify_request
from rollbook.verbs.validation import Check, Finding, findings_in, several
from rollbook.verbs.verifier_check import Verifier, exported_fixture, judging_module, verifier_check

GOLD: Final = "gold_answer"
_NAME: Final = "answers"
_MOST_ROWS: Final = 200
GoldAnswer = Callable[[Mapping[str, object]], object]


async def answers_checked(verifier: Verifier, rows: Iterable[SourceRow]) -> Check:
    """Ask a verifier about the cases of its fixture, and about the gold and the empty answer of each row."""
    place = str(verifier.folder / "app.py")
    try:
        fixture = exported_fixture(verifier.folder)
        gold = getattr(judging_module(verifier.folder), GOLD, None)
    except MissingPackageError as error:
        return Check(_NAME, unchecked=str(error))
    except RollbookError as error:
        return Check(_NAME, findings_in(str(error), place))
    if fixture is None:
        return Check(_NAME, unchecked=f"{place} exports no VERIFIER_FIXTURE; export one, see docs/verifier-fixtures.md")
    checked = await verifier_check(verifier)
    found = list(findings_in(checked.problem, str(fixture.cases_path)))
    looked_at = f"{len(checked.cases)} cases of {fixture.cases_path}"
    if not callable(gold):
        return Check(_NAME, several(found), looked_at, f"the rows' own answers: {place} exports no {GOLD}")
    given = list(islice(rows, _MOST_ROWS))
    asked, wrong = await _rows_asked(verifier, fixture, gold, given)
    looked_at += f", the gold and the empty answer of {asked} rows" if asked else ""
    return Check(_NAME, several([*found, *wrong]), looked_at, "" if asked else _unasked(given))


def _unasked(rows: Sequence[SourceRow]) -> str:
    return f"{GOLD} knows no answer to any row" if rows else "there are no rows whose gold answers could be asked about"


async def _rows_asked(
    verifier: Verifier, fixture: VerifierFixture, gold: GoldAnswer, rows: Sequence[SourceRow]
) -> tuple[int, list[Finding]]:
    """Return how many rows have a gold answer, and what the verifier does wrong with them."""
    asked, wrong = 0, []
    for source in rows:
        answer = await _gold_of(gold, source)
        if isinstance(answer, Finding):
            wrong.append(answer)
        elif answer is not None:
            asked += 1
            rewarded = await reward_or_error(fixture, answer)
            nothing = await reward_or_error(fixture, verify_request(source.row, ""))
            wrong += _of_gold(verifier, source.place, rewarded)
            wrong += _of_nothing(verifier, source.place, nothing)
    return asked, wrong


async def _gold_of(gold: GoldAnswer, source: SourceRow) -> JsonObject | Finding | None:
    """Return a row with its gold answer, None where it has none, or what is wrong with the hook."""

    async def asked() -> JsonObject | None:
        answer = gold(source.row)
        return None if answer is None else verify_request(source.row, answer)

    answer = await given_or_raised(asked())
    if not isinstance(answer, BaseException):
        return answer
    raised = f"{GOLD} raised {type(answer).__name__}: {answer}"
    return Finding(source.place, f"{raised}; mend it, or return None for a row without one")


def _of_gold(verifier: Verifier, place: str, reward: float | str) -> list[Finding]:
    best = verifier.high if verifier.higher_is_better else verifier.low
    if isinstance(reward, str):
        return [Finding(place, f"the verifier raised on the gold answer: {reward}")]
    if math.isclose(reward, best, abs_tol=1e-9):
        return []
    return [
        Finding(place, f"the gold answer has the reward {reward:g}, the best one is {best:g}; mend verifier or row")
    ]


def _of_nothing(verifier: Verifier, place: str, reward: float | str) -> list[Finding]:
    middle = (verifier.low + verifier.high) / 2
    if isinstance(reward, str):
        return [Finding(place, f"the verifier raised on an empty answer: {reward}; give it the worst reward")]
    if verifier.low <= reward <= verifier.high and (reward < middle) == verifier.higher_is_better and reward != middle:
        return []
    return [Finding(place, f"an empty answer has the reward {reward:g}; it is to lie in the worse half of the range")]

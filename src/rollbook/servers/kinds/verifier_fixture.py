"""What a verifier says of itself: a way to build it, and requests whose rewards are known.

Rules:
* A fixture is a value; nothing runs before `exercise_verifier_fixture` (module `verifier_exercise`).
* A case is one JSON line; which line is wrong, and why, is said with the file's name.
* A malformed case names text of the error, any other its reward.

Source: servers.md §8.12.
"""

import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Self

import orjson
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError, model_validator

from rollbook.errors import VerifierFixtureError


class CaseKind(StrEnum):
    """What a case is to show."""

    FULL_REWARD = "full_reward"
    ZERO_REWARD = "zero_reward"
    MALFORMED = "malformed"
    DETERMINISM = "determinism"


class VerifierCase(BaseModel):
    """One request with what it must bring: `expected_reward`, or text of the error that a malformed one raises."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(min_length=1)
    kind: CaseKind
    request: dict[str, JsonValue]
    expected_reward: float | None = None
    expected_error: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _expects_its_own_kind_of_end(self) -> Self:
        other = self.expected_reward if self.kind is CaseKind.MALFORMED else self.expected_error
        if other is not None:
            raise ValueError(f"a {self.kind} case expects {self.expects}, and nothing else")
        return self

    @property
    def expects(self) -> str:
        """The name of the field that says how a case of this kind ends."""
        return "expected_error" if self.kind is CaseKind.MALFORMED else "expected_reward"

    @property
    def says_what_it_expects(self) -> bool:
        """Whether that field is filled in."""
        return getattr(self, self.expects) is not None


@dataclass(frozen=True, slots=True)
class VerifierFixture:
    """How to build a verifier and what to ask it. A server's module exports one as `VERIFIER_FIXTURE`.

    `server_factory()` returns a fresh server. `request_model` reads a case's request. `cases_path` is a file of JSON
    lines, see `VerifierCase`. `invoke(server, request)` asks the server, by its `verify(request)` unless given.
    `reseed()` is called before every request, for verifiers that draw from a generator of the process. `reward_range`,
    (lowest, highest), and `higher_is_better` are what a check goes by where no manifest says it.
    """

    server_factory: Callable[[], Any]
    request_model: type[BaseModel]
    cases_path: str | os.PathLike[str]
    invoke: Callable[[Any, Any], Awaitable[Any] | Any] | None = None
    reseed: Callable[[], object] | None = None
    reward_range: tuple[float, float] = (0.0, 1.0)
    higher_is_better: bool = True


def read_cases(path: str | os.PathLike[str]) -> list[VerifierCase]:
    """Return the cases of a file, in its order.

    Raises:
        VerifierFixtureError: no such file, a line that is no case, or two cases of one name.

    """
    try:
        lines = Path(path).read_bytes().splitlines()
    except OSError as error:
        raise VerifierFixtureError(f"{path}: the cases cannot be read: {error.strerror}") from None
    cases = [_case(f"{path}:{number}", line) for number, line in enumerate(lines, start=1) if line.strip()]
    repeated = [name for name, count in Counter(case.name for case in cases).items() if count > 1]
    if repeated:
        raise VerifierFixtureError(f"{path}: several cases are named {', '.join(map(repr, repeated))}; rename them")
    return cases


def write_cases(path: str | os.PathLike[str], cases: Sequence[VerifierCase]) -> None:
    """Replace a file of cases as a whole."""
    lines = [orjson.dumps(_written(case)) + b"\n" for case in cases]
    beside = Path(f"{os.fspath(path)}.new")
    beside.write_bytes(b"".join(lines))
    beside.replace(path)


def _case(place: str, line: bytes) -> VerifierCase:
    try:
        return VerifierCase.model_validate(orjson.loads(line))
    except orjson.JSONDecodeError as error:
        raise VerifierFixtureError(f"{place}: no JSON: {error}") from None
    except ValidationError as error:
        wrong = "; ".join(_told(detail) for detail in error.errors(include_url=False, include_input=False))
        raise VerifierFixtureError(f"{place}: {wrong}") from None


def _told(detail: Mapping[str, Any]) -> str:
    where = ".".join(str(part) for part in detail["loc"])
    return f"{where}: {detail['msg']}" if where else str(detail["msg"])


def _written(case: VerifierCase) -> dict[str, Any]:
    return case.model_dump(mode="json", exclude_none=True) | {"request": case.request}

"""The tests of a row, as they stand or packed.

Rules:
* Packed tests are not trusted: what they unpack to is bounded, and everything in them is checked.
* A row whose tests cannot be read, or that has none, is no measure; the error says why.

Source: servers.md §7.3 (4).
"""

import base64
import binascii
import zlib
from typing import Final, Self

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

MOST_BYTES: Final = 1 << 26
"""What packed tests may unpack to, and what tests may weigh in all."""


class UnreadableTestsError(Exception):
    """The tests of a row cannot be read."""


class UnitTests(BaseModel):
    """Inputs and the outputs that they ask for; with `fn_name`, arguments and returned values, as lines of JSON.

    `before` and `after` are code of the row's own, around the solution.
    """

    model_config = ConfigDict(extra="ignore")

    inputs: list[str]
    outputs: list[str]
    fn_name: str | None = None
    before: str = ""
    after: str = ""

    @model_validator(mode="after")
    def check(self) -> Self:
        """Refuse tests without an output, and none at all."""
        if len(self.inputs) != len(self.outputs) or not self.inputs:
            raise ValueError(f"{len(self.inputs)} inputs and {len(self.outputs)} outputs are no tests")
        return self


def read_tests(metadata: object) -> UnitTests:
    """Return the tests of a row's `verifier_metadata`.

    Raises:
        UnreadableTestsError: there are none, or they cannot be read.

    """
    tests = metadata.get("unit_tests") if isinstance(metadata, dict) else None
    packed = tests.get("packed") if isinstance(tests, dict) else None
    try:
        return UnitTests.model_validate(tests) if packed is None else unpacked(str(packed))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in ("unit_tests", *first["loc"]))
        raise UnreadableTestsError(f"verifier_metadata.{place}: {first['msg']}") from error


def unpacked(packed: str) -> UnitTests:
    """Return packed tests.

    Raises:
        UnreadableTestsError: they are not packed as they should be, or too large.
        ValidationError: what was packed is not tests.

    """
    reader = zlib.decompressobj()
    try:
        content = reader.decompress(base64.b64decode(packed, validate=True), MOST_BYTES)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise UnreadableTestsError(f"packed tests are no base64 of zlib: {error}") from error
    if reader.unconsumed_tail:
        raise UnreadableTestsError(f"packed tests unpack to more than {MOST_BYTES} bytes")
    if not reader.eof:
        raise UnreadableTestsError("packed tests are cut off")
    return UnitTests.model_validate_json(content)

"""The parsed source is let go of once this folder's tests are done with it: it is a million objects."""

from collections.abc import Iterator

import pytest

from architecture.source_tree import modules


@pytest.fixture(scope="package", autouse=True)
def _source() -> Iterator[None]:
    yield
    modules.cache_clear()

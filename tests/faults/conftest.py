import pytest

from faults.raw_server import serving
from faults.table import REPLIES


@pytest.fixture(scope="package")
def server():
    with serving(REPLIES) as server:
        yield server

import pytest

from rollbook.servers.http.http_client import global_aiohttp_client_exit


@pytest.fixture(autouse=True)
async def closed_client():
    yield
    await global_aiohttp_client_exit()

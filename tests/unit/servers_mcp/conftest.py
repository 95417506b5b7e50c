import pytest

from rollbook.config.parser import forget_global_config_dict
from rollbook.servers.http.http_client import global_aiohttp_client_exit


@pytest.fixture(autouse=True)
async def closed_client():
    yield
    await global_aiohttp_client_exit()
    forget_global_config_dict()


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", str(tmp_path))
    return tmp_path

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
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", str(tmp_path))
    return tmp_path


@pytest.fixture
def component(tmp_path):
    """Write a component's files, and return its folder."""

    def write(name="tool", **files):
        folder = tmp_path / "resources_servers" / name
        folder.mkdir(parents=True)
        for stem, text in files.items():
            suffix = ".toml" if stem == "pyproject" else ".txt"
            (folder / f"{stem}{suffix}").write_text(text)
        return folder

    return write

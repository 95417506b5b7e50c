"""What code beside a server asks of its configuration: is there one, a token, a port."""

import socket

import pytest

from rollbook.config.addresses import DEFAULT_HOST, find_open_port
from rollbook.config.hub_token import get_hf_token
from rollbook.config.parser import (
    NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME,
    maybe_get_global_config_dict,
    set_global_config_dict,
)
from rollbook.errors import ConfigError


@pytest.fixture(autouse=True)
def _no_token(monkeypatch):
    for variable in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(variable, raising=False)


def test_a_process_without_a_configuration_has_none_and_parses_nothing():
    assert maybe_get_global_config_dict() is None
    assert maybe_get_global_config_dict() is None


def test_a_configuration_that_was_set_is_the_process_own():
    cfg = set_global_config_dict({"colour": "red"})
    assert maybe_get_global_config_dict() is cfg


def test_a_configuration_that_was_handed_down_is_found(monkeypatch):
    monkeypatch.setenv(NEMO_GYM_CONFIG_DICT_ENV_VAR_NAME, "colour: blue\n")
    found = maybe_get_global_config_dict()
    assert found is not None
    assert found.colour == "blue"


def test_the_hub_token_of_the_configuration_wins_over_that_of_the_environment(monkeypatch):
    assert get_hf_token() is None
    monkeypatch.setenv("HF_TOKEN", "from the environment")
    assert get_hf_token() == "from the environment"
    set_global_config_dict({"hf_token": "from the configuration"})
    assert get_hf_token() == "from the configuration"
    set_global_config_dict({"hf_token": None})
    assert get_hf_token() == "from the environment"


def test_an_open_port_is_in_the_range_and_not_disallowed():
    port = find_open_port(disallowed_ports=[10001], port_range_low=10001, port_range_high=10400)
    assert 10001 < port <= 10400


def test_a_port_that_somebody_listens_on_is_not_open():
    with socket.socket() as taken:
        taken.bind((DEFAULT_HOST, 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"no free port between {port} and {port} on 127.0.0.1 in 3 tries"):
            find_open_port(max_retries=3, port_range_low=port, port_range_high=port)

import logging

import pytest
from pydantic import ValidationError

from rollbook import token_id_capture_config


def test_without_the_block_nothing_is_captured():
    read = token_id_capture_config({"observability_enabled": True, "token_id_capture": None})
    assert not read.token_id_capture.enabled
    assert not read.token_id_capture.external_staging


def test_a_capture_that_nobody_makes_is_told(caplog):
    with caplog.at_level(logging.WARNING):
        read = token_id_capture_config({"token_id_capture": {"enabled": True}, "model_call_capture_dir": "/captures"})
    assert read.token_id_capture.enabled
    assert "servers here keep none" in caplog.text


@pytest.mark.parametrize(
    ("block", "said"),
    [
        ({"enable": True}, "enable"),
        ({"enabled": True}, "needs a `dir` or a `sink`"),
        ({"sink": "mine:Sink"}, "needs a `lineage_store`"),
        ({"enabled": True, "dir": "/d", "external_staging": True}, "rebuild_response: false"),
        ({"external_staging": True, "rebuild_response": False}, "enabled: true"),
        ({"external_staging_backend": "mine"}, "megatron_worker"),
    ],
)
def test_a_block_that_contradicts_itself_is_refused(block, said):
    with pytest.raises(ValidationError, match=said):
        token_id_capture_config({"token_id_capture": block})


@pytest.mark.parametrize(
    "block",
    [
        {"sink": "mine:Sink", "allow_unresolved_continuations": True, "enabled": True},
        {"enabled": True, "rebuild_response": False, "external_staging": True},
    ],
)
def test_a_block_whose_values_go_together_is_read(block):
    assert token_id_capture_config({"token_id_capture": block}).token_id_capture.enabled

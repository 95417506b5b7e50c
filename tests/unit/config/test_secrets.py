"""Masking."""

import pytest
import yaml
from omegaconf import OmegaConf

from rollbook.config.secrets import masked, masked_urls, masked_yaml
from rollbook.errors import ConfigInterpolationError


@pytest.mark.parametrize(
    "key",
    [
        "policy_api_key",
        "HF_TOKEN",
        "default_headers",
        "Authorization_Header",
        "key",
        "db_password",
        "my_secret",
        "credentials",
    ],
)
@pytest.mark.parametrize("value", ["sk-1", 7, {"a": "sk-1"}, ["sk-1"], None])
def test_a_secret_key_hides_whatever_it_holds(key, value):
    assert masked({"a": [{"b": {key: value}}]}) == {"a": [{"b": {key: "****"}}]}


def test_other_values_are_shown():
    tree = {"a": 1, "b": {"c": ["x", None]}}
    assert masked(tree) == tree


def test_masking_changes_nothing_of_what_it_is_given():
    tree = {"api_key": "sk"}
    masked(tree)
    assert tree == {"api_key": "sk"}


def test_the_text_is_yaml_of_the_resolved_configuration_in_its_order():
    cfg = OmegaConf.create({"z": "${a}", "a": "ä: b", "api_key": "sk"})
    text = masked_yaml(cfg)
    assert list(yaml.safe_load(text).items()) == [("z", "ä: b"), ("a", "ä: b"), ("api_key", "****")]


def test_what_cannot_be_resolved_is_an_error_with_its_path():
    with pytest.raises(ConfigInterpolationError, match=r"`a\.b`: there is no `nowhere`"):
        masked_yaml(OmegaConf.create({"a": {"b": "${nowhere}"}}))


def test_an_open_value_is_shown_as_open():
    assert masked_yaml(OmegaConf.create({"a": "???"})) == "a: ???\n"


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("http://u:pw@h/v1", "http://****@h/v1"),
        ("https://pw@h:8000", "https://****@h:8000"),
        ("http://u:p@w@h/v1?a=1", "http://****@h/v1?a=1"),
        ("http://u:pw@a/v1,http://u:pw@b/v1", "http://****@a/v1,http://****@b/v1"),
        ("http://h/v1/a@b", "http://h/v1/a@b"),
        ("http://h/v1?to=a@b", "http://h/v1?to=a@b"),
        ("me@example.org", "me@example.org"),
    ],
)
def test_a_user_and_a_password_of_a_url_are_hidden_and_nothing_else_is(written, shown):
    assert masked_urls(written) == shown
    assert masked({"a": [{"openai_base_url": written}, written]}) == {"a": [{"openai_base_url": shown}, shown]}


def test_a_url_that_is_put_together_by_interpolation_is_masked_as_well():
    cfg = OmegaConf.create({"address": "u:pw@h", "url": "http://${address}/v1"})
    assert yaml.safe_load(masked_yaml(cfg))["url"] == "http://****@h/v1"

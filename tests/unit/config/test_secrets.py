"""Masking."""

import pytest
import yaml
from omegaconf import OmegaConf

from rollbook.config.secrets import masked, masked_yaml
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

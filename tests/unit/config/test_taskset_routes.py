"""What a person is told to type so that a taskset has its environment server."""

import json
import re

import pytest
import yaml
from omegaconf import OmegaConf

from rollbook.config.overrides import apply_overrides, parse_overrides
from rollbook.config.taskset_routes import how_to_route
from rollbook.plan.environment_routes import EnvironmentRoutes

TYPED = ["ts", "7", "with-dash_1", "harbor:tb", "a.b", "group/name", "two words", "v1.0:x/y@z", "true"]
WRITTEN = ["it's", 'say "x"', "{a}", "é", "a,b", "1.50", "1:2", " led", "trailed ", "a\nb", "$(x)", "", ".hid", "a\\b"]


@pytest.mark.parametrize("taskset", TYPED)
def test_what_is_told_can_be_typed_and_leads_the_taskset_there(taskset):
    said = how_to_route(taskset)
    token = re.fullmatch(r"add (?:'(.*)'|(\S+=<environment server>))", said)
    assert token is not None
    words = (token[1] or token[2]).replace("<environment server>", "turns")
    config = apply_overrides(OmegaConf.create({}), parse_overrides([words]))
    assert EnvironmentRoutes(config)[taskset] == "turns"


@pytest.mark.parametrize("taskset", WRITTEN)
def test_what_no_override_can_hold_is_told_as_configuration(taskset):
    told = how_to_route(taskset).removeprefix("add to the configuration: ")
    config = OmegaConf.create(yaml.safe_load(told.replace("<environment server>", "turns")))
    assert EnvironmentRoutes(config)[taskset] == "turns"
    assert json.dumps(taskset, ensure_ascii=False) in told

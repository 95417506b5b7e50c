"""Settings that were changed in place after they were made: what they say now is what is acted on."""

from functools import cached_property
from typing import get_args, get_origin

import pytest
from pydantic import ConfigDict, Field

from rollbook.api.arguments import checked_settings
from rollbook.config.collection import E2ERolloutCollectionConfig, RolloutCollectionConfig
from rollbook.errors import ConfigError

MADE = {
    RolloutCollectionConfig: {"input_jsonl_fpath": "in.jsonl", "output_jsonl_fpath": "out.jsonl"},
    E2ERolloutCollectionConfig: {"split": "train", "output_jsonl_fpath": "out.jsonl"},
}
MORE = {
    "agent_map": ("a", "b"),
    "count_failure_classes_as_zero": "agent_run_error",
    "environment_server_routes": ("sums", "adder"),
    "fan_out": ("a", ["b", "c"]),
    "health_check_ignored_checks": "model_call_failed",
    "num_repeats": ("a", 3),
    "num_repeats_add_seed": ("a", True),
    "responses_create_params": ("temperature", 0.0),
    "server_queue_metrics_urls": "http://127.0.0.1:8000/metrics",
    "task_ids": "t1",
}
"""What is put into each list and mapping: an item, or a key with its value."""


def holds_several(annotation):
    return get_origin(annotation) in {list, dict} or any(map(holds_several, get_args(annotation)))


CONTAINERS = [
    (model, name) for model in MADE for name, field in model.model_fields.items() if holds_several(field.annotation)
]


def put_into(container, more):
    if isinstance(container, list):
        container.append(more)
    else:
        container[more[0]] = more[1]


def first_of(name):
    """Return a value that holds something else already."""
    more = MORE[name]
    other = {"health_check_ignored_checks": "record_unreadable", "server_queue_metrics_urls": "http://127.0.0.1:1/"}
    return [other.get(name, "other")] if isinstance(more, str) else {"other": more[1]}


@pytest.mark.parametrize(("model", "name"), CONTAINERS)
@pytest.mark.parametrize("start", ["default", "given", "assigned"])
def test_what_is_put_into_a_setting_in_place_is_acted_on(model, name, start):
    config = model(**MADE[model], **({name: first_of(name)} if start == "given" else {}))
    if start == "assigned":
        setattr(config, name, first_of(name))
    held = getattr(config, name)
    if not isinstance(held, list | dict):
        assert start == "default"
        assert getattr(checked_settings(config), name) == held
        return
    put_into(held, MORE[name])
    assert getattr(checked_settings(config), name) == held
    held.clear()
    if name != "task_ids":
        assert getattr(checked_settings(config), name) == held


@pytest.mark.parametrize("model", MADE)
def test_what_nobody_gave_counts_as_given_only_once_something_is_put_into_it(model):
    config = model(**MADE[model])
    assert checked_settings(config).model_fields_set == config.model_fields_set
    config.environment_server_routes["sums"] = "adder"
    assert checked_settings(config).model_fields_set == config.model_fields_set | {"environment_server_routes"}


def test_every_list_and_mapping_of_the_settings_is_tried():
    assert {name for _, name in CONTAINERS} == set(MORE)


def test_what_was_put_into_a_setting_is_held_to_its_rules():
    config = RolloutCollectionConfig(**MADE[RolloutCollectionConfig])
    config.health_check_ignored_checks.append("nope")
    with pytest.raises(ConfigError, match="unknown health checks: nope"):
        checked_settings(config)


class Mine(RolloutCollectionConfig):
    model_config = ConfigDict(extra="allow", validate_by_alias=True)

    required: int = Field(alias="needed")
    notes: dict[str, str] = Field(default_factory=dict, alias="remarks")
    nothing: int = None
    listed: list[int] = Field(default=[1, 2])
    numbered: list[int] = Field(default_factory=lambda data: [len(data)])

    @cached_property
    def reckoned(self):
        return self.required + 3


def test_settings_of_a_subclass_are_kept_whatever_their_names_and_defaults_are():
    config = Mine(**MADE[RolloutCollectionConfig], needed=5, else_wise="kept")
    config.notes["a"] = "b"
    config.numbered.append(7)
    config.listed.clear()
    assert config.reckoned == 8
    checked = checked_settings(config)
    assert type(checked) is Mine
    assert (checked.required, checked.notes, checked.nothing) == (5, {"a": "b"}, None)
    assert (checked.numbered, checked.listed) == (config.numbered, [])
    assert checked.model_extra == {"else_wise": "kept"}
    assert checked_settings(Mine(**MADE[RolloutCollectionConfig], needed=5, remarks={"c": "d"})).notes == {"c": "d"}

"""Keys that a settings class was given by name and does not read: most are mistyped options."""

import warnings

import pytest
from omegaconf import OmegaConf
from pydantic import AliasChoices, AliasPath, ConfigDict, Field, ValidationError

import rollbook
from rollbook.config.collection import (
    E2ERolloutCollectionConfig,
    RolloutAggregationConfig,
    RolloutCollectionConfig,
    SharedRolloutCollectionConfig,
)
from rollbook.config.reverification import RolloutReverificationConfig
from rollbook.config.settings import BaseNeMoGymCLIConfig, settings_from

PLAIN = {"input_jsonl_fpath": "in.jsonl", "output_jsonl_fpath": "out/rollouts.jsonl"}
CLASSES = [
    (RolloutCollectionConfig, PLAIN, "num_repeat", "num_repeats"),
    (E2ERolloutCollectionConfig, {"split": "train", "output_jsonl_fpath": "o.jsonl"}, "require_completed", "require_c"),
    (SharedRolloutCollectionConfig, {"output_jsonl_fpath": "o.jsonl"}, "num_sample_in_parallel", "num_samples_in"),
    (RolloutAggregationConfig, {"input_glob": "*", "output_jsonl_fpath": "o.jsonl"}, "merge_shard", "merge_shards"),
    (
        RolloutReverificationConfig,
        {"materialized_inputs_jsonl_fpath": "m", "rollouts_jsonl_fpath": "r", "output_jsonl_fpath": "o.jsonl"},
        "judge_failed",
        "judge_failed_only",
    ),
]


@pytest.fixture
def told():
    """Return the texts of the warnings so far."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield lambda: [str(warning.message) for warning in caught]


@pytest.mark.parametrize(("model", "given", "typo", "near"), CLASSES)
def test_a_mistyped_option_is_told_with_the_nearest_name(told, model, given, typo, near):
    model(**given, **{typo: 3})
    (text,) = told()
    assert f"{model.__name__} has no option `{typo}`" in text
    assert f"Did you mean `{near}" in text


def test_the_warning_stands_at_the_line_that_gave_the_option():
    for make in (
        lambda: RolloutCollectionConfig(**PLAIN, num_repeat=3),
        lambda: RolloutCollectionConfig.model_validate({**PLAIN, "num_repeat": 3}),
    ):
        with pytest.warns(UserWarning, match="num_repeat") as caught:
            make()
        assert caught[0].filename == __file__
    with pytest.warns(DeprecationWarning, match="upload_rollouts") as caught:
        RolloutCollectionConfig(**PLAIN, upload_rollouts_to_wandb=False)
    assert caught[0].filename == __file__


def test_several_are_told_together_and_one_that_is_like_no_option_without_a_guess(told):
    RolloutCollectionConfig(**PLAIN, limits=2, zzz=1)
    assert told()[0].splitlines() == [
        "RolloutCollectionConfig has no option `limits`, which does nothing. Did you mean `limit`?",
        "RolloutCollectionConfig has no option `zzz`, which does nothing.",
    ]


def test_what_follows_from_another_option_cannot_be_set(told):
    RolloutCollectionConfig(**PLAIN, materialized_jsonl_fpath="x")
    assert "has no option `materialized_jsonl_fpath`" in told()[0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "options", [{}, {"retry_invalid_judge_responses": False}, {"upload_rollouts_to_wandb": True}, {"limit": None}]
)
def test_names_that_are_known_are_no_typo(told, options):
    RolloutCollectionConfig(**PLAIN, **options)
    assert not [text for text in told() if "has no option" in text]


@pytest.mark.parametrize("old", [{}, {"upload_rollouts_to_wandb": True}])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_merged_configuration_holds_much_more_and_nothing_is_said_of_it(told, old):
    merged = {**PLAIN, **old, "num_repeat": 3, "head_server": {"host": "h", "port": 1}}
    RolloutCollectionConfig.model_validate(OmegaConf.create(merged))
    RolloutCollectionConfig(**merged)
    settings_from(RolloutCollectionConfig, {**PLAIN, **old, "num_repeat": 3})
    assert not [text for text in told() if "has no option" in text]


def test_a_class_that_keeps_what_it_is_given_is_left_alone(told):
    class Keeping(BaseNeMoGymCLIConfig):
        model_config = ConfigDict(extra="allow")

    class Mine(RolloutCollectionConfig):
        extra: int = 3

    assert (Keeping(anything=1).anything, Mine(**PLAIN, extra=4).extra) == (1, 4)
    assert told() == []


@pytest.mark.filterwarnings("ignore:.*has no option")
def test_a_refused_value_is_not_repeated_by_the_class_itself_either():
    with pytest.raises(ValidationError) as caught:
        rollbook.RolloutCollectionConfig(**PLAIN, dispatch_budget_s=1, policy_api_key="sk-verysecret")
    assert "sk-" not in str(caught.value)
    assert "dispatch_budget_s needs num_samples_in_parallel" in str(caught.value)


class Aliased(RolloutCollectionConfig):
    one: int = Field(default=1, alias="uno")
    two: int = Field(default=2, validation_alias=AliasChoices("due", AliasPath("numbers", 1), "two"))
    three: int = Field(default=3, validation_alias=AliasPath("figures", 0))


def test_an_option_that_is_read_under_another_name_is_no_stray(told):
    for options in ({"uno": 5, "due": 6, "figures": [7]}, {"uno": 5, "numbers": [0, 6], "figures": [7]}):
        made = Aliased(**PLAIN, **options)
        assert (made.one, made.two, made.three) == (5, 6, 7)
    assert told() == []
    Aliased(**PLAIN, tre=5)
    assert "Aliased has no option `tre`" in told()[0]


WHOLE = {"out": "o.jsonl", "part": {"input_jsonl_fpath": "i", "output_jsonl_fpath": "${out}"}}


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("readonly", [False, True])
@pytest.mark.parametrize(("given", "uploads"), [({}, False), ({"upload_rollouts": True}, True)])
def test_the_old_name_of_uploading_is_read_in_a_part_of_a_configuration(given, uploads, readonly):
    cfg = OmegaConf.merge(WHOLE, {"part": {**given, "upload_rollouts_to_wandb": False}})
    OmegaConf.set_readonly(cfg, readonly)
    OmegaConf.set_struct(cfg, value=True)
    before = OmegaConf.to_yaml(cfg)
    made = RolloutCollectionConfig.model_validate(cfg.part)
    assert (made.output_jsonl_fpath, made.upload_rollouts) == ("o.jsonl", uploads)
    assert OmegaConf.to_yaml(cfg) == before

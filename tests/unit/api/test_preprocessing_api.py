import pytest
from omegaconf import OmegaConf

from rollbook.api.rollout_collection import RolloutCollectionHelper
from rollbook.errors import InputError
from stub import AGENT, ENVIRONMENT, Stub, adding

PROMPT = {"responses_create_params": {"input": "add 1 and 1"}}
CONFIG = OmegaConf.create(Stub().config())


def preprocess(rows, **options):
    return RolloutCollectionHelper().preprocess_examples(rows, global_config_dict=CONFIG, **options)


@pytest.mark.parametrize(
    "names", [{"agent_ref": "somebody_else"}, {"agent_ref": {"name": ["A"]}}, {"task_source": [AGENT]}]
)
def test_the_only_agent_never_runs_a_row_that_names_somebody_in_a_way_that_cannot_be_read(names):
    with pytest.raises(InputError, match="row 1: "):
        preprocess([*adding(1), PROMPT | names])
    with pytest.raises(InputError, match="row 1: "):
        RolloutCollectionHelper.resolve_task_sources([*adding(1), PROMPT | names], CONFIG)


@pytest.mark.parametrize(
    "names",
    [{}, {"agent_ref": {}}, {"agent_ref": None}, {"task_source": None}, {"_ng_environment_server": ENVIRONMENT}],
)
def test_a_row_that_names_no_agent_goes_to_the_only_agent(names):
    (row,) = preprocess([PROMPT | names])
    assert row["agent_ref"] == {"name": AGENT}


def test_repeats_of_a_row_with_an_id_of_its_own_are_refused():
    rows = adding(1, _ng_rollout_id="mine")
    assert preprocess(rows)[0]["_ng_rollout_id"] == "mine"
    with pytest.raises(InputError, match="row 0"):
        preprocess(rows, num_repeats=2)


def test_a_row_that_json_cannot_hold_is_named():
    with pytest.raises(InputError, match="row 1: expected a mapping"):
        preprocess([*adding(1), ["no row"]])

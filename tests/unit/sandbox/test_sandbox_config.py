"""From words about sandboxes to a provider, its arguments and its metadata."""

import pytest
from omegaconf import OmegaConf

from rollbook.sandbox import (
    CPU_CAP_ENV_VARS,
    SandboxConfigError,
    cpu_cap_env,
    resolve_attribution,
    resolve_provider_config,
    resolve_provider_metadata,
    resolve_run_id,
    rewrite_image,
)

BLOCK = {"local": {"network": True}, "default_metadata": {"team": "evals", "tier": 2}}


def test_a_block_names_its_provider_and_its_arguments():
    assert resolve_provider_config(BLOCK) == {"local": {"network": True}}


def test_a_name_is_looked_up_in_the_configuration():
    assert resolve_provider_config("sandbox", {"sandbox": BLOCK}) == {"local": {"network": True}}


def test_a_block_of_the_configurations_library_becomes_plain_and_resolved():
    config = OmegaConf.create({"root": "/scratch", "sandbox": {"local": {"workspace_root": "${root}"}}})
    found = resolve_provider_config("sandbox", config)
    assert found == {"local": {"workspace_root": "/scratch"}}
    assert type(found["local"]) is dict


@pytest.mark.parametrize("arguments", [None, {}])
def test_a_provider_without_arguments_has_none(arguments):
    assert resolve_provider_config({"local": arguments}) == {"local": {}}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ({}, "names exactly one provider; this one names none"),
        ({"default_metadata": {}}, "names none"),
        ({"docker": {}, "local": {}}, "names docker, local"),
        ({"local": "fast"}, "local is str; write a mapping"),
        ("elsewhere", "no block named 'elsewhere'"),
        (7, "this is 7"),
        (None, "this is None"),
    ],
)
def test_what_names_no_one_provider_is_refused(value, words):
    with pytest.raises(SandboxConfigError, match=words):
        resolve_provider_config(value, {})


def test_metadata_are_texts():
    assert resolve_provider_metadata("sandbox", {"sandbox": BLOCK}) == {"team": "evals", "tier": "2"}


def test_a_block_without_metadata_has_none():
    assert resolve_provider_metadata({"local": {}}) == {}


def test_a_cap_of_processors_is_said_in_every_variable():
    assert cpu_cap_env(4) == dict.fromkeys(CPU_CAP_ENV_VARS, "4")
    assert {"OMP_NUM_THREADS", "DJANGO_TEST_PROCESSES", "GOMAXPROCS", "CMAKE_BUILD_PARALLEL_LEVEL"} < set(
        CPU_CAP_ENV_VARS
    )


@pytest.mark.parametrize(("cpu", "said"), [(0.5, "1"), (0, "1"), (2.9, "2")])
def test_a_part_of_a_processor_is_rounded_down_to_one_at_least(cpu, said):
    assert set(cpu_cap_env(cpu).values()) == {said}


def test_no_cap_is_no_variable():
    assert cpu_cap_env(None) == {}


@pytest.mark.parametrize(
    ("image", "found"),
    [
        ("docker.io/library/python:3", "mirror/library/python:3"),
        ("ghcr.io/x", "ghcr.io/x"),
        ("docker.io/", "mirror/"),
    ],
)
def test_the_first_fitting_prefix_of_an_image_is_replaced(image, found):
    assert rewrite_image(image, [{"from": "docker.io/", "to": "mirror/"}, {"from": "mirror/", "to": "no/"}]) == found


def test_an_image_without_rewrites_stays():
    assert rewrite_image("a", None) == rewrite_image("a", []) == "a"


def test_a_rewrite_without_an_end_is_refused():
    with pytest.raises(SandboxConfigError, match="from: prefix, to: prefix"):
        rewrite_image("a", [{"from": "a"}])


def test_the_run_is_what_was_given_else_what_the_environment_says(monkeypatch):
    for name in ("NEMO_GYM_RUN_ID", "ROLLBOOK_RUN_ID", "SLURM_JOB_ID"):
        monkeypatch.delenv(name, raising=False)
    assert resolve_run_id() is None
    monkeypatch.setenv("SLURM_JOB_ID", "77")
    assert resolve_run_id() == "77"
    monkeypatch.setenv("NEMO_GYM_RUN_ID", "night")
    assert (resolve_run_id(), resolve_run_id("mine")) == ("night", "mine")


def test_an_attribution_overwrites_nothing(monkeypatch):
    monkeypatch.setenv("NEMO_GYM_RUN_ID", "night")
    assert resolve_attribution({"user": "somebody"}) == {"user": "somebody", "run_id": "night"}

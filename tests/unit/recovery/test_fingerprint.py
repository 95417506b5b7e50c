"""Digests of settings and configuration."""

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from omegaconf import OmegaConf

from rollbook.config.collection import RolloutCollectionConfig
from rollbook.recovery.credentials import names_credential
from rollbook.recovery.fingerprint import configuration_sha256, digest_of, fingerprints, used_instances


def ref(server_type, name):
    return {"type": server_type, "name": name}


CONFIG = {
    "policy_api_key": "sk-hunter2",
    "verifier": {
        "resources_servers": {"math": {"entrypoint": "app.py", "judge": ref("responses_api_models", "judge")}}
    },
    "agent": {
        "responses_api_agents": {
            "simple": {
                "entrypoint": "app.py",
                "max_steps": 3,
                "resources_server": ref("resources_servers", "verifier"),
                "model_server": ref("responses_api_models", "policy"),
            }
        }
    },
    "front": {
        "environment_servers": {
            "turn": {"entrypoint": "app.py", "port": 8001, "agent_server": ref("responses_api_agents", "agent")}
        }
    },
    "policy": {
        "responses_api_models": {
            "vllm": {
                "host": "127.0.0.1",
                "port": 9,
                "model": "m",
                "api_key": "sk-hunter2",
                "base_url": ["http://u:hunter2@a/v1", "http://b/v1"],
                "default_headers": {"Authorization": "Bearer hunter2hunter2"},
                "max_output_tokens": 512,
            }
        }
    },
    "judge": {"responses_api_models": {"vllm": {"model": "j"}}},
    "unused": {"responses_api_models": {"vllm": {"model": "u"}}},
    "unused_front": {
        "environment_servers": {"turn": {"agent_server": ref("responses_api_agents", "unused_agent")}},
    },
    "unused_agent": {"responses_api_agents": {"simple": {"model_server": ref("responses_api_models", "unused")}}},
}


def changed(config, *path, value):
    *above, last = path
    copy = OmegaConf.to_container(OmegaConf.create(config))
    node = copy
    for step in above:
        node = node[step]
    node[last] = value
    return copy


def of(config):
    return fingerprints({}, config, ["agent"], [])


def test_a_server_is_in_when_a_rollout_of_the_plan_can_reach_it():
    assert used_instances(CONFIG, ["agent"], []) == ("verifier", "agent", "front", "policy", "judge")


def test_an_environment_server_that_a_row_names_brings_its_agent():
    assert used_instances(CONFIG, [], ["unused_front"]) == ("unused", "unused_front", "unused_agent")


def test_a_circle_of_references_comes_to_an_end():
    circle = {
        "a": {"responses_api_agents": {"x": {"next": ref("responses_api_agents", "b")}}},
        "b": {"responses_api_agents": {"x": {"next": [ref("responses_api_agents", "a")]}}},
    }
    assert used_instances(circle, ["a", "not there"], []) == ("a", "b")


def test_an_instance_that_no_rollout_reaches_changes_nothing():
    assert of(changed(CONFIG, "unused", "responses_api_models", "vllm", "model", value="other")) == of(CONFIG)


def test_every_leaf_is_named_by_its_dotted_key():
    assert [key for key in of(CONFIG) if key.startswith(("policy.", "front."))] == [
        "front.environment_servers.turn.agent_server.name",
        "front.environment_servers.turn.agent_server.type",
        "front.environment_servers.turn.entrypoint",
        "policy.responses_api_models.vllm.api_key",
        "policy.responses_api_models.vllm.base_url",
        "policy.responses_api_models.vllm.default_headers",
        "policy.responses_api_models.vllm.max_output_tokens",
        "policy.responses_api_models.vllm.model",
    ]


@pytest.mark.parametrize("setting", ["model", "max_output_tokens"])
def test_a_changed_setting_changes_its_own_key_alone(setting):
    old, new = of(CONFIG), of(changed(CONFIG, "policy", "responses_api_models", "vllm", setting, value="other"))
    assert [key for key in old if old[key] != new[key]] == [f"policy.responses_api_models.vllm.{setting}"]


def test_the_host_and_port_that_a_server_is_given_change_nothing():
    assert of(changed(CONFIG, "policy", "responses_api_models", "vllm", "port", value=77)) == of(CONFIG)


def test_a_digest_is_that_of_the_canonical_json():
    found = fingerprints({"a": {"b": ["ü", 1.0, None]}}, {}, [], [])
    assert found == {"settings.a.b": hashlib.sha256('["ü",1,null]'.encode()).hexdigest()}


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, 1.0), ((1, 2), [1, 2]), (Path("a/b"), "a/b"), ({2, 1}, {1, 2}), ({"a": 1, "b": 2}, {"b": 2, "a": 1})],
)
def test_values_that_are_alike_have_one_digest(one, other):
    assert digest_of(one) == digest_of(other)


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, "1"), (None, ""), (0.5, 0.25), ([], {}), ([1, 2], [2, 1])])
def test_values_that_are_not_alike_have_two_digests(one, other):
    assert digest_of(one) != digest_of(other)


def test_two_places_never_share_a_key():
    found = fingerprints({"a.b": 1, "a": {"b": 2, "[0]": 3, "": 4}, "c": [{"d": 5}], "c[0]": {"d": 6}}, {}, [], [])
    assert len(found) == 6
    assert {"settings.a.b", 'settings."a.b"', "settings.c[0].d", 'settings."c[0]".d'} <= set(found)


def test_settings_as_they_are_validated_can_be_told_apart():
    settings = RolloutCollectionConfig(input_jsonl_fpath="in.jsonl", output_jsonl_fpath="out.jsonl", limit=3)
    keys = fingerprints(settings.model_dump(), {}, [], [])
    assert keys["settings.limit"] == digest_of(3)


def test_no_collection_setting_is_taken_for_a_credential():
    assert [name for name in RolloutCollectionConfig.model_fields if names_credential(name)] == []


def test_a_configuration_of_its_own_library_is_read_like_a_plain_one():
    assert of(OmegaConf.create(CONFIG)) == of(CONFIG)


def test_the_digest_of_all_keys_ignores_what_is_irrelevant():
    keys = of(CONFIG) | {"settings.num_samples_in_parallel": "a"}
    assert configuration_sha256(keys) == configuration_sha256(keys | {"settings.num_samples_in_parallel": "b"})
    assert configuration_sha256(keys) != configuration_sha256(keys | {"policy.responses_api_models.vllm.model": "b"})


NAMES = st.sampled_from(["model", "temperature", "a.b", "max_tokens", "nested", "stop", "host", "judge"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text("aü😀.:@/ ", max_size=8)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=12
)
SECRETS = st.text("abcdef0123456789", min_size=24, max_size=24)


def turned(node):
    """Return a tree with the keys of every mapping in the opposite order."""
    if isinstance(node, dict):
        return {key: turned(node[key]) for key in reversed(node)}
    return [turned(part) for part in node] if isinstance(node, list) else node


def instance(block):
    return {"agent": {"responses_api_agents": {"simple": block}}}


@given(st.dictionaries(NAMES, TREES, max_size=4), st.dictionaries(NAMES, TREES, max_size=4))
def test_fingerprints_do_not_depend_on_the_order_of_keys(settings, block):
    found = fingerprints(settings, instance(block), ["agent"], [])
    again = fingerprints(turned(settings), turned(instance(block)), ["agent"], [])
    assert list(found.items()) == list(again.items())


def with_secrets(block, secret):
    return {
        **block,
        "api_key": secret,
        "tokens": [{"hf_token": {"deep": [secret]}}],
        "headers": {"X-Anything": secret, secret: 1},
        "base_url": f"http://me:{secret}@host/v1?api_key={secret}",
        f"http://me:{secret}@host": {"a": 1},
        "args": ["--api-key", secret, f"--auth-token={secret}"],
        "note": f"Authorization: Bearer {secret}",
    }


@given(st.dictionaries(NAMES, TREES, max_size=4), SECRETS, SECRETS)
def test_a_changed_credential_never_changes_a_fingerprint(block, old, new):
    found = [fingerprints(block, instance(with_secrets(block, secret)), ["agent"], []) for secret in (old, new)]
    assert found[0] == found[1]


@given(st.dictionaries(NAMES, TREES, max_size=4), SECRETS)
def test_no_credential_nor_its_digest_is_in_a_fingerprint(block, secret):
    found = fingerprints(with_secrets(block, secret), instance(with_secrets(block, secret)), ["agent"], [])
    assert secret not in str(found)
    assert not {digest_of(secret), hashlib.sha256(secret.encode()).hexdigest()} & set(found.values())

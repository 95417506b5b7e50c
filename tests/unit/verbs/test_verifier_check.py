"""What a manifest says of rewards, and what it cannot say."""

import pytest

from rollbook.errors import ConfigError
from rollbook.verbs.verifier_check import verifier_named

MANIFEST = """\
name: judged
version: "0.1.0"
kind: environment
integration_profile: custom-gym-agent-loop
domain: other
description: Judged by a judge.
modality: text
authors: [somebody]
agent_server: simple_agent
model_server: policy_model
datasets: []
"""


@pytest.fixture
def named(tmp_path, monkeypatch):
    """Write an environment's manifest, and return the verifier that it names."""
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", str(tmp_path))
    (tmp_path / "resources_servers" / "judge").mkdir(parents=True)

    def read(more):
        folder = tmp_path / "environments" / "judged"
        folder.mkdir(parents=True)
        (folder / "manifest.yaml").write_text(MANIFEST + more)
        return verifier_named("judged")

    return read


def test_what_a_manifest_says_of_rewards_is_read(named):
    reward = "reward: {range: [-1, 2.5], higher_is_better: false}"
    told = named(f"resources_server: judge\n{reward}\ndeterminism: seeded\n")
    assert (told.low, told.high, told.higher_is_better, told.determinism) == (-1.0, 2.5, False, "seeded")
    assert told.folder.name == "judge"


def test_a_manifest_without_a_resources_server_has_nothing_to_check(named):
    with pytest.raises(ConfigError, match=r"manifest\.yaml names no resources_server; nothing of judged can be"):
        named("reward: {range: [0, 1], higher_is_better: true}\n")


def test_a_manifest_that_cannot_be_read_says_what_to_write(named):
    with pytest.raises(ConfigError, match=r"manifest\.yaml:12: reward is 3; write \{range"):
        named("reward: 3\n")

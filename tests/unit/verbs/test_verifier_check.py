"""What a manifest says of rewards, and what it cannot say."""

import pytest

from rollbook.errors import ConfigError
from rollbook.verbs.verifier_check import verifier_named


@pytest.fixture
def named(tmp_path, monkeypatch):
    """Write an environment's manifest, and return the verifier that it names."""
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", str(tmp_path))
    (tmp_path / "resources_servers" / "judge").mkdir(parents=True)

    def read(manifest):
        folder = tmp_path / "environments" / "judged"
        folder.mkdir(parents=True)
        (folder / "manifest.yaml").write_bytes(manifest if isinstance(manifest, bytes) else manifest.encode())
        return verifier_named("judged")

    return read


@pytest.mark.parametrize(
    ("reward", "words"),
    [
        ("3", r"reward is 3; write reward: \{range: \[<lowest>, <highest>\]\}, two numbers"),
        ("[0, 1]", r"reward is \[0, 1\]; write reward"),
        ("{range: [0, 1, 2]}", r"reward\.range is \[0, 1, 2\]; write reward"),
        ("{range: ['a', 'b']}", r"reward\.range is \['a', 'b'\]; write"),
        ("{range: {low: 0}}", r"reward\.range is \{'low': 0\}; write"),
        ("{range: [1, 0]}", r"reward\.range is \[1, 0\]; write"),
        ("{range: [.nan, 1]}", r"reward\.range is \[nan, 1\]; write"),
        ("{range: [false, true]}", r"reward\.range is \[False, True\]; write"),
        ("{range: 5}", r"reward\.range is 5; write"),
        ("{higher_is_better: perhaps}", r"reward\.higher_is_better is 'perhaps'; write true or false"),
        ("{}\ndeterminism: often", r"determinism is 'often'; write one of seeded, stochastic, unknown"),
        ("{}\ndeterminism: [seeded]", r"determinism is \['seeded'\]; write one of"),
    ],
)
def test_what_a_manifest_cannot_say_is_named_with_what_to_write(named, reward, words):
    with pytest.raises(ConfigError, match=r"manifest\.yaml: " + words):
        named(f"resources_server: judge\nreward: {reward}\n")


def test_a_manifest_that_is_no_text_is_named(named):
    with pytest.raises(ConfigError, match=r"manifest\.yaml cannot be read"):
        named(b"resources_server: \xff\n")


def test_what_a_manifest_says_of_rewards_is_read(named):
    told = named("resources_server: judge\nreward: {range: [-1, 2.5], higher_is_better: false}\ndeterminism: seeded\n")
    assert (told.low, told.high, told.higher_is_better, told.determinism) == (-1.0, 2.5, False, "seeded")


def test_a_manifest_that_says_nothing_of_rewards_means_0_to_1(named):
    told = named("resources_server: judge\n")
    assert (told.low, told.high, told.higher_is_better, told.determinism) == (0.0, 1.0, True, "unknown")

"""What a policy says, and what is refused."""

import pytest

from rollbook.compare.policy import OnInconclusive, Severity
from rollbook.errors import ConfigError, ConfigPathNotFoundError
from rollbook.verbs.compare_policy import read_policy


def policy(folder, text):
    path = folder / "policy.yaml"
    path.write_text(text)
    return read_policy(path)


def test_a_tier_takes_over_what_it_does_not_say(tmp_path):
    hard_tasks, easy_tasks = "{name: hard, max_drop: 0.1, severity: block}", "{name: easy, max_drop: 0}"
    text = f"min_coverage: 0.8\nseverity: warn\ntiers:\n  - {hard_tasks}\n  - {easy_tasks}"
    hard, easy = policy(tmp_path, text).demands()
    assert (hard.severity, hard.min_coverage, hard.min_paired) == (Severity.BLOCK, 0.8, 0.8)
    assert (easy.severity, easy.on_inconclusive) == (Severity.WARN, OnInconclusive.INCONCLUSIVE)


@pytest.mark.parametrize(
    ("text", "place", "said"),
    [
        ("max_drop: 0.1\nmax_dorp: 0.2\n", ":2: max_dorp", "no such key; did you mean max_drop?"),
        ("tiers:\n  - {name: a, max_drop: 1, tgas: {x: 1}}", ":2: tiers.0.tgas", "did you mean tags?"),
        ("max_drop: -1", ":1: max_drop", "greater than or equal to 0"),
        ("max_drop: high", ":1: max_drop", "valid number"),
        ("max_drop: true", ":1: max_drop", "valid number"),
        ("max_drop: .nan", ":1: max_drop", "finite"),
        ("alpha: 0.05", ":1: the policy", "without a limit"),
        ("max_drop: 0.1\nmin_coverage: 95", ":2: min_coverage", "less than or equal to 1"),
        ("version: 2\nmax_drop: 0", ":1: version", "1"),
        (
            "tiers:\n  - name: a\n    max_drop: 1\n  - name: b\n    max_drop: 1\n    severity: stop",
            ":6: tiers.1.severity",
            "'block'",
        ),
        ("tiers:\n  - name: a", ":2: tiers.0", "a tier has max_drop"),
        (
            "tiers:\n  - {name: a, max_drop: 1}\n  - {name: a, max_drop: 2}",
            ":1: the policy",
            "two tiers have the name a",
        ),
        ("tiers:\n  - {name: a, max_drop: 1, metric: m, tags: {x: 1}}", ":2: tiers.0", "metric: reward alone"),
        ("tiers:\n  - {name: a, max_drop: 1, metric: m, field: f}", ":2: tiers.0", "of the rows or about a metric"),
        ("max_drop: 0.1\nmax_drop: 0.9", ":2: max_drop", "second time"),
        ("max_drop: [", ":1", "malformed YAML"),
        ("- max_drop", "", "mapping of keys"),
        ("", "", "mapping of keys"),
        ("max_drop: \xff\n", "", ""),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path, text, place, said):
    with pytest.raises(ConfigError) as caught:
        policy(tmp_path, text)
    assert f"{tmp_path}/policy.yaml{place}" in str(caught.value)
    assert said in str(caught.value)


def test_every_fault_is_told_at_once(tmp_path):
    with pytest.raises(ConfigError) as caught:
        policy(tmp_path, "max_drop: x\nalpha: 2\n")
    assert len(str(caught.value).splitlines()) == 2


def test_a_policy_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigPathNotFoundError, match=r"no\.yaml"):
        read_policy(tmp_path / "no.yaml")


def test_an_alias_that_holds_itself_is_refused(tmp_path):
    with pytest.raises(ConfigError):
        policy(tmp_path, "max_drop: 0.1\ntiers: &t [*t]")

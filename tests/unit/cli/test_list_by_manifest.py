"""`gym list environments`: what manifests say is shown, and chooses what is listed."""

import json

import pytest
import yaml

from rollbook.cli.entry import exit_code_of

MANIFEST = {
    "version": "0.1.0",
    "kind": "environment",
    "integration_profile": "custom-gym-agent-loop",
    "domain": "math",
    "description": "Adds up.",
    "modality": "text, image",
    "authors": ["somebody"],
    "reward": {"range": [0, 1], "higher_is_better": True},
    "agent_server": "simple_agent",
    "model_server": "policy_model",
    "datasets": [],
}


@pytest.fixture
def names(tmp_path, monkeypatch, capsys):
    """Make three environments; return the names that `gym list environments` has, with flags."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    changes = {"sums": {}, "games": {"domain": "games", "experimental": False, "licensing": "MIT"}, "bare": None}
    for name, changed in changes.items():
        folder = tmp_path / "environments" / name
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text("")
        if changed is not None:
            (folder / "manifest.yaml").write_text(yaml.safe_dump({"name": name, **MANIFEST, **changed}))

    def listing(*flags):
        code = exit_code_of(["list", "environments", "--search-dir", str(tmp_path), "--json", *flags])
        said = capsys.readouterr()
        ours = [entry for entry in json.loads(said.out) if entry["name"] in {*changes, "broken"}]
        return code, {entry["name"]: entry for entry in ours}, said.err

    return listing


@pytest.mark.parametrize(
    ("flags", "wanted"),
    [
        ([], ["bare", "games", "sums"]),
        (["--domain", "Math"], ["sums"]),
        (["--modality", "image"], ["games", "sums"]),
        (["--modality", "ima"], []),
        (["--licensing", "mit"], ["games"]),
        (["--status", "experimental"], ["sums"]),
        (["--status", "no-manifest"], ["bare"]),
        (["--lifecycle", "deprecated"], []),
        (["--lifecycle", "active", "--domain", "games"], ["games"]),
    ],
)
def test_filters_leave_what_the_manifest_says(names, flags, wanted):
    code, entries, _ = names(*flags)
    assert (code, sorted(entries)) == (0, wanted)


def test_an_entry_tells_its_manifest_and_a_status_only_where_there_is_one(names):
    _, entries, _ = names()
    told = ("domain", "version", "integration_profile", "modality", "licensing", "lifecycle")
    assert [entries["sums"][field] for field in told] == [
        "math",
        "0.1.0",
        "custom-gym-agent-loop",
        "text, image",
        "unknown",
        "active",
    ]
    assert {name: entry.get("status") for name, entry in entries.items()} == {
        "sums": "experimental",
        "games": None,
        "bare": "no-manifest",
    }
    assert "status" not in entries["games"]


def test_a_manifest_that_cannot_be_read_is_told_and_hides_no_other(names, tmp_path):
    folder = tmp_path / "environments" / "broken"
    folder.mkdir()
    (folder / "config.yaml").write_text("")
    (folder / "manifest.yaml").write_text("a: &a [1]\ndescription: *a\n")
    code, entries, err = names()
    assert (code, entries["broken"]["status"], entries["broken"]["description"]) == (0, "broken-manifest", "")
    assert "manifest.yaml:2: an alias (*a)" in err
    assert len(entries) == 4


def test_an_agent_says_whether_it_is_bound_to_a_resources_server_of_others(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name, server in {"bound": "colours", "open": "???"}.items():
        configs = tmp_path / "responses_api_agents" / name / "configs"
        configs.mkdir(parents=True)
        block = {"entrypoint": "app.py", "resources_server": {"type": "resources_servers", "name": server}}
        (configs / f"{name}.yaml").write_text(yaml.safe_dump({name: {"responses_api_agents": {name: block}}}))
    assert exit_code_of(["list", "agents", "--json"]) == 0
    told = {entry["name"]: (entry["pattern"], entry["self_contained"]) for entry in json.loads(capsys.readouterr().out)}
    assert told["bound"] == ("B (self-contained)", True)
    assert told["open"] == told["simple_agent"] == ("A (composable)", False)

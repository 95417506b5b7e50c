"""`gym search`, and the flags of `gym env validate`, `gym env schema` and `gym env publish`."""

import json

import pytest
import yaml

from rollbook.cli.entry import exit_code_of

CONFIG = {
    "judge": {"resources_servers": {"mcqa": {"entrypoint": "app.py", "domain": "knowledge"}}},
    "acts": {
        "responses_api_agents": {
            "simple_agent": {
                "entrypoint": "app.py",
                "resources_server": {"type": "resources_servers", "name": "judge"},
                "model_server": {"type": "responses_api_models", "name": "policy_model"},
            }
        }
    },
}


@pytest.fixture
def said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEMO_GYM_EXTRA_ROOTS", "")
    for name, description in {
        "zebra_riddles": "Who owns the animal.",
        "plain": "Riddles about a zebra; a zymurgy of words.",
        "far": "Nothing of the kind.",
    }.items():
        folder = tmp_path / "environments" / name
        folder.mkdir(parents=True)
        (folder / "config.yaml").write_text("")
        (folder / "README.md").write_text(f"# {name}\n\n{description}\n")

    def call(*arguments):
        code = exit_code_of(arguments)
        return code, *capsys.readouterr()

    return call


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["zebra"], ["zebra_riddles", "plain"]),
        (["ZEBRA", "riddles"], ["zebra_riddles", "plain"]),
        (["zebra riddles"], ["zebra_riddles", "plain"]),
        (["zebrariddles"], ["zebra_riddles"]),
        (["+query=zebra"], ["zebra_riddles", "plain"]),
        (["environments", "zymurgi"], ["plain"]),
        (["zebr_ridles"], ["zebra_riddles"]),
        (["xylophon"], []),
        (["benchmarks", "zebra"], []),
    ],
)
def test_what_holds_the_words_comes_first_and_what_is_nearly_so_behind(said, words, found):
    code, out, _ = said("search", *words, "--json")
    assert (code, [entry["name"] for entry in json.loads(out)]) == (0, found)


def test_a_search_of_servers_is_listed_as_they_are(said):
    code, out, _ = said("search", "resources-servers", "mcqa", "--json")
    assert (code, [entry["name"] for entry in json.loads(out)]) == (0, ["mcqa"])
    assert "simple_agent" in said("search", "agents", "simple")[1]


@pytest.mark.parametrize("words", [[], [""], ["  "], ["agents", ""]])
def test_a_search_for_nothing_is_a_usage_error(said, words):
    code, _, err = said("search", *words)
    assert code == 2
    assert "say what to look for" in err


def test_a_search_that_finds_nothing_says_how_many_it_looked_at(said):
    code, out, _ = said("search", "xylophon")
    assert code == 0
    assert "environments has to do with 'xylophon'; gym list environments shows all." in out


def test_a_configuration_without_a_model_is_valid_with_a_warning_and_not_when_strict(said, tmp_path):
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    code, out, err = said("env", "validate", "--config", "c.yaml")
    assert (code, out) == (0, "✓ Config is valid.\n")
    assert "Warning: policy_model_name is missing; give --model or +policy_model_name=<value>" in err
    code, out, err = said("env", "validate", "--config", "c.yaml", "--strict")
    assert (code, out) == (1, "")
    named = ("--model", "m", "--model-url", "http://127.0.0.1:1/v1", "--model-api-key", "k", "--strict")
    assert said("env", "validate", "--config", "c.yaml", *named)[:2] == (0, "✓ Config is valid.\n")
    assert said("env", "validate", "--config", "c.yaml", "--model-type", "simulated_model", "--strict")[0] == 0


def test_a_configuration_that_cannot_be_run_is_an_error(said, tmp_path):
    broken = {**CONFIG, "judge": {"resources_servers": {"mcqa": {"entrypoint": "app.py"}}}}
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(broken))
    code, _, err = said("env", "validate", "--config", "c.yaml")
    assert code == 1
    assert "domain" in err


def test_a_configuration_is_told_as_one_json_document(said, tmp_path):
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(CONFIG))
    code, out, _ = said("env", "validate", "--config", "c.yaml", "--json", "--strict")
    assert (code, json.loads(out)["valid"], len(json.loads(out)["warnings"])) == (1, False, 3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["env", "validate", "a", "b"], "name one environment, or one --manifest"),
        (["env", "validate", "a", "--manifest", "m.yaml"], "name one environment, or one --manifest"),
        (["env", "validate"], "nothing to check: name an environment, or servers with --config"),
        (["env", "validate", "--sync"], "--sync: name the environment"),
        (["env", "validate", "zebra_ridles"], "Did you mean `zebra_riddles`?"),
        (["env", "publish"], "name the environment"),
        (["env", "schema"], "name the server"),
        (["env", "schema", "--resources-server", "mcq"], "mcqa"),
    ],
)
def test_what_is_not_named_is_a_usage_error(said, words, message):
    code, _, err = said(*words)
    assert code == 2
    assert message in err


def test_a_server_that_says_nothing_of_its_fields_has_no_schema(said, tmp_path):
    (tmp_path / "resources_servers" / "mute").mkdir(parents=True)
    code, out, err = said("env", "schema", "--resources-server", "mute")
    assert (code, out) == (1, "")
    assert "has no task_data.py; declare there a pydantic model named TaskData" in err


def test_a_manifest_is_checked_wherever_it_lies_and_what_is_wrong_is_said(said, tmp_path):
    (tmp_path / "m.yaml").write_text("name: [1]\n")
    code, out, _ = said("env", "validate", "--manifest", "m.yaml")
    assert code == 1
    assert f"error: {tmp_path}/m.yaml:1: name is [1]; write the name of its folder" in out
    assert "- rows     not checked: the manifest and its configuration have to be mended first" in out
    code, out, _ = said("env", "publish", "plain", "--json")
    assert (code, json.loads(out)["valid"]) == (1, False)

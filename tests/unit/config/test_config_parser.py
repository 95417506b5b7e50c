"""The parser: who wins over whom, what is filled in, and what it costs."""

import itertools
import re
import subprocess
import sys
import warnings

import pytest
from omegaconf import OmegaConf

from rollbook.config.instances import require_server_instances, server_instances
from rollbook.config.names import RESERVED_KEYS
from rollbook.config.parser import (
    GlobalConfigDictParser,
    GlobalConfigDictParserConfig,
    get_first_server_config_dict,
    get_global_config_dict,
    set_global_config_dict,
)
from rollbook.config.secrets import masked_yaml
from rollbook.errors import (
    AlmostServerError,
    ConfigError,
    ConfigInterpolationError,
    ConfigMissingValuesError,
    ConfigPathNotFoundError,
    NoServerInstancesError,
    ServerRefNotFoundError,
)

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SOURCES = ("file", "dotenv", "program", "command line")


@pytest.mark.parametrize("given", [c for n in (1, 2, 3, 4) for c in itertools.combinations(SOURCES, n)])
def test_the_highest_source_that_gives_a_key_wins_and_the_others_add_theirs(write, parse, given):
    def tree(source):
        return {"who": source, "all": {source.replace(" ", "_"): 1}}

    if "file" in given:
        write("a.yaml", OmegaConf.to_yaml(OmegaConf.create(tree("file"))))
    if "dotenv" in given:
        write("env.yaml", OmegaConf.to_yaml(OmegaConf.create(tree("dotenv"))))
    tokens = ["+config_paths=[a.yaml]"] if "file" in given else []
    tokens += ["+who='command line'", "+all.command_line=1"] if "command line" in given else []
    cfg = parse(*tokens, initial_global_config_dict=tree("program") if "program" in given else None)
    assert cfg.who == given[-1]
    assert set(cfg["all"]) == {source.replace(" ", "_") for source in given}


def test_config_paths_may_come_from_any_source_but_the_files(write, parse):
    write("a.yaml", "x: 1\n")
    assert parse(initial_global_config_dict={"config_paths": ["a.yaml"]}).x == 1
    write("env.yaml", "config_paths: [a.yaml]\n")
    assert parse().x == 1
    assert "x" not in parse(skip_load_from_dotenv=True)


def test_a_named_environment_file_is_read_and_must_be_there(write, parse):
    write("env.yaml", "x: 1\n")
    write("other.yaml", "x: 2\n")
    assert parse(dotenv_path="other.yaml").x == 2
    with pytest.raises(ConfigPathNotFoundError, match=r"dotenv_path.*nowhere\.yaml"):
        parse(dotenv_path="nowhere.yaml")


def test_the_environment_file_is_found_in_an_extra_root(write, parse, monkeypatch, here):
    write("elsewhere/env.yaml", "x: 1\n")
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", str(here / "elsewhere"))
    assert parse().x == 1


def test_tokens_of_the_process_are_read_unless_told_otherwise(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["gym", "+x=1"])
    parser = GlobalConfigDictParser()
    assert parser.parse(GlobalConfigDictParserConfig(offline=True)).x == 1
    assert "x" not in parser.parse(GlobalConfigDictParserConfig(offline=True, skip_load_from_cli=True))


def test_the_smallest_configuration_yields_three_servers_and_a_generated_one(colours, parse):
    cfg = parse(colours)
    found = {instance.name: instance for instance in server_instances(cfg)}
    assert list(found) == ["colours", "colours_simple_agent", "policy_model", "colours_environment_server"]
    assert all(10001 <= instance.port <= 20000 and instance.host == "127.0.0.1" for instance in found.values())
    assert len({instance.port for instance in found.values()}) == 4
    assert cfg.head_server == {"host": "127.0.0.1", "port": 11000}
    assert found["colours_environment_server"].implementation == "legacy_agent"
    assert found["policy_model"].settings["openai_model"] == "tiny"
    assert GlobalConfigDictParser().filter_for_server_instance_configs(cfg) == list(found.values())


def test_without_a_domain_the_smallest_configuration_is_an_almost_server(colours, parse):
    with pytest.raises(AlmostServerError, match=r"colours\.resources_servers\.colours\.domain: Field required"):
        parse(colours, "~colours.resources_servers.colours.domain")


def test_a_wrong_reference_is_answered_with_the_right_one(colours, parse):
    with pytest.raises(ServerRefNotFoundError, match=r"`colour`.*Did you mean `colours`\?"):
        parse(colours, "++colours_simple_agent.responses_api_agents.simple_agent.resources_server.name=colour")


def test_without_environment_file_all_policy_keys_are_asked_for_at_once(colours, parse):
    with pytest.raises(ConfigInterpolationError) as caught:
        parse(colours, skip_load_from_dotenv=True)
    flags = {"policy_base_url": "--model-url", "policy_api_key": "--model-api-key", "policy_model_name": "--model"}
    for key, flag in flags.items():
        assert f"add {flag} <value> or ++{key}=<value>" in str(caught.value)
    assert "`policy_model.responses_api_models.openai_model.openai_api_key` (in " in str(caught.value)


def test_an_open_policy_key_is_asked_for_with_its_flag_too(write, parse):
    write("a.yaml", "policy_base_url: ???\n")
    with pytest.raises(ConfigMissingValuesError, match=r"add --model-url <value> or \+\+policy_base_url=<value>"):
        parse("+config_paths=[a.yaml]", skip_load_from_dotenv=True)


def test_every_open_value_is_told_in_one_error(write, parse):
    write("a.yaml", "a: ???\nb:\n  c: ???\n  d: [1, '???']\ne: ${a}\nf: ${nowhere}\n")
    with pytest.raises(ConfigMissingValuesError) as caught:
        parse("+config_paths=[a.yaml]")
    lines = str(caught.value).splitlines()
    assert [line.partition(" (in ")[0] for line in lines[1:4]] == ["  `a`", "  `b.c`", "  `b.d[1]`"]
    assert lines[2].endswith("a.yaml): add ++b.c=<value>")
    assert "there is no `nowhere`" in str(caught.value)
    assert parse("+config_paths=[a.yaml]", "++a=1", "++b={c: 2, d: [1]}", "++nowhere=3").f == 3


@pytest.mark.parametrize(
    ("text", "reason", "cure"),
    [
        ("x: ${nowhere.z}", "there is no `nowhere.z`", "add ++nowhere.z=<value>"),
        (
            "x: ${oc.env:ROLLBOOK_TEST_UNSET}",
            "the environment has no ROLLBOOK_TEST_UNSET",
            "export ROLLBOOK_TEST_UNSET=",
        ),
        ("b:\n  c:\n    x: ${..z}", "there is no `b.z`", "add ++b.z=<value>"),
        ("b: [{x: '${.z}'}]", "there is no `b.0.z`", "add ++b.0.z=<value>"),
        ("x: ${x}", "it leads back to itself", "add ++x=<value>"),
        ("x: ${odd:1}", "it names an unknown resolver", "add ++x=<value>"),
        ("x: ${oc.decode:'[1'}", "it cannot be resolved", "add ++x=<value>"),
    ],
)
def test_an_interpolation_that_points_at_nothing_says_why(write, parse, text, reason, cure):
    write("a.yaml", text)
    with pytest.raises(ConfigInterpolationError) as caught:
        parse("+config_paths=[a.yaml]")
    assert f"{reason}; " in str(caught.value)
    assert cure in str(caught.value)


def test_what_an_error_says_to_type_is_what_mends_it(write, parse):
    write("a.yaml", "a: ???\nb:\n  c: ???\n  d: [1, {e: '???'}]\n  f: ${.g}\nh: ${i.j}\n")
    tokens = ["+config_paths=[a.yaml]"]
    with pytest.raises(ConfigMissingValuesError) as caught:
        parse(*tokens)
    cures = re.findall(r"add (\+\+\S+)=<value>", str(caught.value))
    cfg = parse(*tokens, *(f"{cure}=5" for cure in cures))
    assert cfg.b == {"c": 5, "d": [1, {"e": 5}], "f": 5, "g": 5}
    assert (cfg.a, cfg.h) == (5, 5)


def test_a_value_of_the_command_line_is_said_to_come_from_there(colours, parse):
    with pytest.raises(ConfigMissingValuesError, match=r"`x` \(in the overrides\)"):
        parse(colours, "+x=???")
    with pytest.raises(AlmostServerError, match=r"`colours` \(in .*colours\.yaml and the overrides\)"):
        parse(colours, "++colours.resources_servers.colours.domain=art")


@pytest.mark.parametrize("text", ["a: {b: '${a}'}", "a: {x: '${b}'}\nb: {y: '${a}'}"])
def test_blocks_that_hold_one_another_are_an_error_and_no_recursion(write, parse, text):
    write("a.yaml", text)
    with pytest.raises(ConfigInterpolationError, match=r"circle|a block that holds it"):
        parse("+config_paths=[a.yaml]")


def test_an_interpolation_may_point_at_a_port_that_is_given_out_later(colours, parse):
    cfg = parse(colours, "+where='http://${head_server.host}:${colours.resources_servers.colours.port}'")
    assert cfg.where == f"http://127.0.0.1:{cfg.colours.resources_servers.colours.port}"


def test_defaults_are_filled_in_and_name_no_packaging_tool(parse, here):
    cfg = parse()
    assert cfg == {
        "skip_venv_if_present": False,
        "dry_run": False,
        "server_spinup_timeout_seconds": 600,
        "model_endpoint_readiness_timeout_seconds": 600,
        "results_dir": str(here / "results"),
        "cache_dir": str(here / "cache"),
        "head_server": {"host": "127.0.0.1", "port": 11000},
    }


def test_a_given_value_is_kept_and_its_folder_made_absolute(parse, here):
    cfg = parse("+results_dir=out", "+dry_run=true", "+nemo_gym_log_dir=logs")
    assert (cfg.results_dir, cfg.dry_run, cfg.nemo_gym_log_dir) == (str(here / "out"), True, str(here / "logs"))


@pytest.mark.parametrize("value", ["soon", "-1", "true", "null"])
def test_a_timeout_is_a_number_of_seconds(parse, value):
    with pytest.raises(ConfigError, match=r"`server_spinup_timeout_seconds` is no number of seconds; write \+\+server"):
        parse(f"++server_spinup_timeout_seconds={value}")


def test_skipped_verification_is_copied_to_agents_that_do_not_say_otherwise(colours, parse):
    cfg = parse(colours, "+skip_verification=true", "+skip_verification_reward=0.5")
    agent = get_first_server_config_dict(cfg, "colours_simple_agent")
    assert (agent.skip_verification, agent.skip_verification_reward) == (True, 0.5)
    own = "++colours_simple_agent.responses_api_agents.simple_agent.skip_verification=false"
    assert (
        get_first_server_config_dict(
            parse(colours, "+skip_verification=true", own), "colours_simple_agent"
        ).skip_verification
        is False
    )


TYPED_KEYS = {
    "config_paths",
    "head_server",
    "_inherit_from",
    "_copy",
    "disallowed_ports",
    "server_spinup_timeout_seconds",
    "model_endpoint_readiness_timeout_seconds",
}


@pytest.mark.parametrize("key", sorted(RESERVED_KEYS - TYPED_KEYS))
def test_a_reserved_key_is_accepted_and_never_a_server(parse, key):
    cfg = parse(f"++{key}={{resources_servers: {{x: {{y: 1}}}}}}")
    assert cfg[key] == {"resources_servers": {"x": {"y": 1}}}
    assert server_instances(cfg) == ()


def test_the_dummy_model_stands_in_only_where_no_policy_model_is(colours, parse, write):
    initial = GlobalConfigDictParserConfig.NO_MODEL_GLOBAL_CONFIG_DICT
    cfg = parse("+config_paths=[colours.yaml]", initial_global_config_dict=initial, skip_load_from_dotenv=True)
    assert list(cfg.policy_model.responses_api_models) == ["dummy_model"]
    cfg = parse(colours, initial_global_config_dict=initial, skip_load_from_dotenv=True)
    assert list(cfg.policy_model.responses_api_models) == ["openai_model"]


def test_hidden_secrets_leave_no_secret_in_the_configuration(colours, parse, monkeypatch):
    monkeypatch.setenv("ROLLBOOK_TEST_KEY", "sk-verysecret")
    cfg = parse(colours, "++policy_api_key='${oc.env:ROLLBOOK_TEST_KEY}'", hide_secrets=True)
    assert "verysecret" not in OmegaConf.to_yaml(cfg, resolve=True)
    assert cfg.policy_model.responses_api_models.openai_model.openai_api_key == "****"


def test_no_error_shows_a_secret_of_the_environment(colours, parse, monkeypatch):
    monkeypatch.setenv("ROLLBOOK_TEST_KEY", "sk-verysecret")
    secret = [
        "++policy_api_key='${oc.env:ROLLBOOK_TEST_KEY}'",
        "++colours.resources_servers.colours.note=${policy_api_key}",
    ]
    broken = {
        "~colours.resources_servers.colours.domain": AlmostServerError,
        "++colours.resources_servers.colours.domain=${policy_api_key}": AlmostServerError,
        "++x=???": ConfigMissingValuesError,
        "++x=${nope}": ConfigInterpolationError,
        "++colours_simple_agent.responses_api_agents.simple_agent.model_server.name=nobody": ServerRefNotFoundError,
    }
    for token, error in broken.items():
        with pytest.raises(error) as caught:
            parse(colours, *secret, token)
        assert "verysecret" not in str(caught.value)


def test_the_shown_configuration_is_resolved_and_masked(colours, parse):
    text = masked_yaml(parse(colours))
    assert "openai_base_url: http://127.0.0.1:8000/v1" in text
    assert "openai_api_key: '****'" in text
    assert "policy_api_key: '****'" in text
    assert "dummy" not in text


def test_a_handed_down_configuration_is_used_as_it_is(monkeypatch):
    monkeypatch.setenv("NEMO_GYM_CONFIG_DICT", "colours: {resources_servers: {}}\nx: ???\n")
    cfg = get_global_config_dict()
    assert list(cfg) == ["colours", "x"]
    assert get_global_config_dict() is cfg


@pytest.mark.parametrize("text", ["a: [", "- 1", "a: ${b"])
def test_a_handed_down_text_that_is_no_configuration_is_an_error(monkeypatch, text):
    monkeypatch.setenv("NEMO_GYM_CONFIG_DICT", text)
    with pytest.raises(ConfigError, match="NEMO_GYM_CONFIG_DICT holds no YAML mapping"):
        get_global_config_dict()


def test_the_process_keeps_the_configuration_it_was_given(parse):
    given = parse("+x=1")
    assert set_global_config_dict(given) == given
    assert get_global_config_dict().x == 1


def test_the_first_block_of_an_instance_is_a_part_of_the_configuration(colours, parse):
    cfg = parse(colours)
    assert get_first_server_config_dict(cfg, "colours").domain == "knowledge"
    with pytest.raises(ServerRefNotFoundError, match=r"no server instance `colors`.*Did you mean `colours`"):
        get_first_server_config_dict(cfg, "colors")


def test_a_configuration_without_servers_says_what_to_type(parse):
    with pytest.raises(NoServerInstancesError, match="--resources-server"):
        require_server_instances(parse())


PROBE = """
import sys
from rollbook.config.parser import GlobalConfigDictParser, GlobalConfigDictParserConfig
tokens = sys.argv[1:]
GlobalConfigDictParser().parse(GlobalConfigDictParserConfig(overrides=tokens, offline=True))
print(",".join(sorted({"hydra", "fastapi", "aiohttp", "uvicorn", "rich"} & set(sys.modules))))
"""


@pytest.mark.parametrize(
    ("token", "imported"),
    [("++policy_base_url=http://127.0.0.1:1/v1", ""), ("++policy_model_name='a name'", "hydra")],
)
def test_parsing_imports_hydra_only_for_rich_tokens_and_never_a_server_framework(colours, token, imported):
    done = subprocess.run([sys.executable, "-c", PROBE, colours, token], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, imported), done.stderr


def test_the_package_of_the_configuration_is_free_to_import():
    code = "import sys, rollbook.config; print({'omegaconf', 'pydantic', 'yaml'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_generated_environment_server_is_announced_with_its_block(colours, parse):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        parse(colours)
    (warning,) = caught
    assert warning.category is DeprecationWarning
    assert "`colours_simple_agent`" in str(warning.message)
    assert "colours_environment_server:\n  environment_servers:\n    legacy_agent:" in str(warning.message)


def test_every_error_of_the_room_is_a_configuration_error():
    assert issubclass(ConfigPathNotFoundError, ConfigError)
    assert issubclass(AlmostServerError, ConfigError)

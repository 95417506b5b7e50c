"""Flags, files and overrides → the settings of one collection."""

import pytest
from click import UsageError
from click.types import FloatParamType, IntParamType

from rollbook.cli.configuration import resolved_configuration
from rollbook.cli.eval_run import command
from rollbook.cli.eval_settings import collection_settings, notes_on_typed_keys, settings_given
from rollbook.cli.overrides import checked_overrides
from rollbook.cli.selectors import config_paths_of
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.errors import ConfigError

COLOURS = """
colours:
  resources_servers:
    colours:
      entrypoint: app.py
      domain: knowledge
      datasets:
      - {name: ex, type: example, jsonl_fpath: resources_servers/colours/data/example.jsonl}
"""
SHADES = COLOURS.replace("colours", "shades")


def given(*arguments):
    """Return what click makes of `arguments` after `gym eval run`."""
    context = command.make_context("run", [*arguments])
    return context.params


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NEMO_GYM_EXTRA_ROOTS", raising=False)
    monkeypatch.setenv("ROLLBOOK_EXTRA_ROOTS", "")
    for name, text in (("colours", COLOURS), ("shades", SHADES)):
        folder = tmp_path / "resources_servers" / name / "configs"
        folder.mkdir(parents=True)
        (folder / f"{name}.yaml").write_text(text)
        (folder / "strict.yaml").write_text(text)
        (folder.parent / "app.py").write_text("")
    return tmp_path


def settings(*arguments, serving=True):
    flags = given(*arguments)
    cfg = resolved_configuration(flags, settings=settings_given(flags))
    found, preparation, notes = collection_settings(cfg, serving=serving)
    assert (preparation is None) == (found.input_jsonl_fpath.find("preprocessed_datasets") < 0)
    return found, notes


@pytest.mark.parametrize(
    ("arguments", "key", "value"),
    [
        (["--limit", "3"], "limit", 3),
        (["--limit", "0"], "limit", 0),
        (["--num-repeats", "4"], "num_repeats", 4),
        (["--interleave-repeats"], "interleave_repeats", True),
        (["--concurrency", "2"], "num_samples_in_parallel", 2),
        (["--agent", "a"], "agent_name", "a"),
        (["-a", "a"], "agent_name", "a"),
        (["--overwrite"], "overwrite", True),
        (["--resume"], "resume_from_cache", True),
        (["--disable-aggregation"], "disable_aggregation", True),
        (["--no-health-check"], "disable_health_check", True),
        (["--health-check-workers", "2"], "health_check_workers", 2),
        (["--health-check-ignore", "model_call_failed"], "health_check_ignored_checks", ["model_call_failed"]),
        (["--prompt-config", "p.yaml"], "prompt_config", "p.yaml"),
        (["--no-route-failures"], "route_failures_to_sidecar", False),
        (["--temperature", "0"], "responses_create_params", {"temperature": 0.0}),
        (
            ["--top-p", "0.5", "--max-output-tokens", "9"],
            "responses_create_params",
            {"top_p": 0.5, "max_output_tokens": 9},
        ),
        ([], "num_samples_in_parallel", None),
        ([], "adaptive_concurrency", True),
        (["--concurrency", "auto"], "adaptive_concurrency", True),
        (["--concurrency", "2"], "adaptive_concurrency", False),
        (["--timeout", "3"], "rollout_timeout_s", 3.0),
        (["--budget", "5", "--drain-margin", "1"], "dispatch_budget_s", 5.0),
        (["--group-scored"], "group_scored", True),
        ([], "route_failures_to_sidecar", True),
        (["+num_samples_in_parallel=null"], "num_samples_in_parallel", None),
        (["+route_failures_to_sidecar=false"], "route_failures_to_sidecar", False),
        (["--limit", "3", "++limit=5"], "limit", 5),
        (["--output", "a, b=c/{x}.jsonl"], "output_jsonl_fpath", "a, b=c/{x}.jsonl"),
    ],
)
def test_a_flag_sets_its_option(arguments, key, value, here):
    found, _ = settings("--input", "rows.jsonl", "--output", "out.jsonl", *arguments)
    assert getattr(found, key) == value


def test_the_command_lines_own_defaults_do_not_count_as_given(here):
    (here / "run.yaml").write_text("durability: flush\n")
    found, _ = settings("-i", "rows.jsonl", "-o", "out.jsonl", "--config", "run.yaml", "--limit", "1")
    defaults = {"adaptive_concurrency", "retain_results_in_memory", "route_failures_to_sidecar"}
    assert {"input_jsonl_fpath", "durability", "limit"} <= found.model_fields_set
    assert not defaults & found.model_fields_set
    given_too, _ = settings("-i", "rows.jsonl", "-o", "out.jsonl", "--concurrency", "auto", "--route-failures")
    assert {"adaptive_concurrency", "route_failures_to_sidecar"} <= given_too.model_fields_set
    assert (found.adaptive_concurrency, found.retain_results_in_memory) == (True, False)


def test_a_file_beats_the_command_lines_own_defaults(here):
    (here / "run.yaml").write_text("num_samples_in_parallel: 7\nroute_failures_to_sidecar: false\n")
    found, _ = settings("-i", "rows.jsonl", "-o", "out.jsonl", "--config", "run.yaml")
    assert (found.num_samples_in_parallel, found.route_failures_to_sidecar) == (7, False)


@pytest.mark.parametrize("value", ["-1", "-100"])
def test_a_negative_limit_is_refused(value, here):
    with pytest.raises(ConfigError, match="limit"):
        settings("-i", "rows.jsonl", "-o", "out.jsonl", "--limit", value)


NUMBERS = {
    option.name: option.opts[-1]
    for option in command.params
    if isinstance(option.type, (IntParamType, FloatParamType)) and option.name in RolloutCollectionConfig.model_fields
}


@pytest.mark.parametrize("key", sorted(NUMBERS))
def test_a_number_that_is_refused_is_told_with_its_flag(key, here):
    with pytest.raises(ConfigError, match=rf"`{key}` \({NUMBERS[key]}\): ") as refused:
        settings("-i", "rows.jsonl", "-o", "out.jsonl", NUMBERS[key], "-1")
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("value", ["0", "-1"])
def test_less_than_one_repeat_is_refused(value, here):
    with pytest.raises(ConfigError, match="repeats"):
        settings("-i", "rows.jsonl", "-o", "out.jsonl", "--num-repeats", value)


def test_half_a_repeat_is_refused(here):
    with pytest.raises(ConfigError, match="repeats"):
        settings("-i", "rows.jsonl", "-o", "out.jsonl", "+num_repeats=2.5")


def test_no_repeats_at_all_means_one(here):
    found, _ = settings("-i", "rows.jsonl", "-o", "out.jsonl", "+num_repeats=null")
    assert found.num_repeats == 1


def test_what_is_missing_is_a_usage_error_that_names_the_key(here):
    with pytest.raises(ConfigError, match="missing required configuration: output_jsonl_fpath, input_jsonl_f") as seen:
        settings(serving=False)
    assert seen.value.exit_code == 2


def test_a_served_environments_example_rows_are_run_and_said_so(here):
    found, notes = settings("--resources-server", "colours", "-o", "out.jsonl")
    assert found.input_jsonl_fpath == "resources_servers/colours/data/example.jsonl"
    (note,) = notes
    assert note.startswith("Input: resources_servers/colours/data/example.jsonl\n  the example rows of colours;")


def test_given_rows_are_run_while_serving(here):
    found, notes = settings("--resources-server", "colours", "-i", "mine.jsonl", "-o", "out.jsonl")
    assert (found.input_jsonl_fpath, notes) == ("mine.jsonl", ())


def test_example_rows_of_several_environments_are_not_guessed_among(here):
    with pytest.raises(ConfigError, match=r"several example datasets.*colours.*shades.*--input"):
        settings("--resources-server", "colours", "--resources-server", "shades", "-o", "out.jsonl")


def test_nothing_is_guessed_from_a_configuration_without_servers(here):
    with pytest.raises(ConfigError, match=r"nothing to run.*--environment"):
        settings("-o", "out.jsonl")


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (("--split", "example"), "without a split, or with `--no-serve --input"),
        (("--split", "test"), "'train', 'validation' or 'benchmark'"),
        (("--split", "train", "-i", "rows.jsonl"), "not supported when serving end-to-end"),
    ],
)
def test_a_split_that_is_not_prepared_is_refused_with_what_to_type_instead(arguments, what, here):
    with pytest.raises(ConfigError, match=what):
        settings("--resources-server", "colours", "-o", "out.jsonl", *arguments)


def test_the_rows_of_a_split_lie_below_the_outputs_name(here):
    found, _ = settings("--resources-server", "colours", "-o", "out/r.jsonl", "--split", "train", "--limit", "3")
    assert (found.input_jsonl_fpath, found.limit) == ("out/r/preprocessed_datasets/train.jsonl", 3)
    with pytest.raises(ConfigError, match=r"give the output a suffix: out/r.jsonl"):
        settings("--resources-server", "colours", "-o", "out/r", "--split", "train")


def test_a_split_is_not_collected_from_servers_of_others(here):
    with pytest.raises(ConfigError, match=r"leave out --no-serve, or name rows with --input FILE"):
        settings("-o", "out.jsonl", "--split", "train", serving=False)


def test_files_are_merged_in_one_order_whatever_the_order_of_the_flags(here):
    (here / "own.yaml").write_text("limit: 1\n")
    flags = ("--resources-server", "shades/strict", "--config", "own.yaml", "--resources-server", "colours")
    paths = config_paths_of(given(*flags))
    assert [path.removeprefix(f"{here}/") for path in paths] == [
        "own.yaml",
        "resources_servers/shades/configs/strict.yaml",
        "resources_servers/colours/configs/colours.yaml",
    ]


def test_a_mistyped_selector_is_answered_with_the_nearest_name(here):
    with pytest.raises(ConfigError, match="colours") as seen:
        config_paths_of(given("--resources-server", "colors"))
    assert seen.value.exit_code == 2


def test_a_search_folder_comes_before_the_current_one(here, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    folder = elsewhere / "resources_servers" / "colours" / "configs"
    folder.mkdir(parents=True)
    (folder / "colours.yaml").write_text(COLOURS.replace("example.jsonl", "other.jsonl"))
    found, _ = settings("--search-dir", str(elsewhere), "--resources-server", "colours", "-o", "out.jsonl")
    assert found.input_jsonl_fpath.endswith("other.jsonl")


def typed(*arguments):
    """Return the notes on keys that `arguments` set."""
    flags = given("--resources-server", "colours", "-o", "out.jsonl", *arguments)
    return notes_on_typed_keys(flags, resolved_configuration(flags, settings=settings_given(flags)))


@pytest.mark.parametrize("sign", ["", "+", "++"])
def test_a_mistyped_option_is_told_with_the_nearest_one(sign, here):
    (told,) = typed(f"{sign}max_reply_byte=5", "+max_reply_bytes=5")
    assert told.startswith("`max_reply_byte` is no option, no server and nothing that the configuration refers to.")
    assert told.endswith("Did you mean `max_reply_bytes`?")


def test_a_mistyped_server_is_told_with_the_nearest_one(here):
    (told,) = typed("+colour.domain=x")
    assert "`colour` is no option" in told
    assert "`colours`" in told


@pytest.mark.parametrize(
    "token",
    [
        "+max_reply_bytes=5",
        "+responses_create_params.temperature=1",
        "+policy_anything=1",
        "+global_aiohttp_trust_env=true",
        "+head_server.port=1",
        "+error_on_almost_servers=false",
        "+colours.resources_servers.colours.tolerance=2",
        "+other.resources_servers.colours={entrypoint: app.py, domain: other}",
        "+skip_verification=true",
        "+retry_invalid_judge_responses=false",
        "+mine=2",
        "+theirs=3",
        "~colours",
    ],
)
def test_a_key_that_something_reads_is_worth_no_note(token, here):
    (here / "own.yaml").write_text("mine: 1\nx: {y: 'at ${theirs}'}\n")
    assert typed("--config", "own.yaml", "+theirs=1", token) == ()


@pytest.mark.parametrize("token", ["a=1", "+a=1", "++a.b=[1,2]", "~a", "~a=1", "+a=", "a=b=c", "+x={y: 1}"])
def test_an_override_goes_through_as_it_is(token):
    assert checked_overrides([token], []) == [token]


@pytest.mark.parametrize("token", ["stray", "=1", "+", "+=1", "~", "+++a=1"])
def test_a_token_that_is_no_override_is_refused_with_how_to_write_one(token):
    with pytest.raises(UsageError, match=r"\+key=value"):
        checked_overrides([token], [])


@pytest.mark.parametrize("token", ["config_paths=[b.yaml]", "+config_paths=[b.yaml]", "++config_paths=[]"])
def test_files_are_named_by_flags_or_by_a_token_but_not_both(token):
    with pytest.raises(UsageError, match="--config"):
        checked_overrides([token], ["a.yaml"])
    assert checked_overrides([token], []) == [token]

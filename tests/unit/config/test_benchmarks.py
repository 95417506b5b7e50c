"""A benchmark's configuration file, read for what it says of its data set and its agent."""

from pathlib import Path

import pytest

from rollbook.config.benchmarks import BenchmarkConfig
from rollbook.config.parser import GlobalConfigDictParser, GlobalConfigDictParserConfig
from rollbook.errors import ConfigError, ConfigPathNotFoundError
from unit.config.conftest import COLOURS, MODEL

BENCHMARK = """
config_paths: [resources_servers/colours/configs/colours.yaml]
colours_benchmark:
  _inherit_from: colours
  resources_servers:
    colours:
      datasets:
      - name: colours
        type: benchmark
        jsonl_fpath: benchmarks/colours/data/colours.jsonl
        prepare_script: benchmarks/colours/prepare.py
        num_repeats: 5
colours_benchmark_agent:
  _inherit_from: colours_simple_agent
  responses_api_agents:
    simple_agent:
      resources_server: {type: resources_servers, name: colours_benchmark}
"""


@pytest.fixture
def benchmark(write):
    write("resources_servers/colours/configs/colours.yaml", COLOURS)

    def written(text=BENCHMARK, name="colours"):
        return write(f"benchmarks/{name}/config.yaml", text)

    return written


def test_a_benchmark_is_read_with_its_data_set_and_its_agent(benchmark):
    found = BenchmarkConfig.from_config_path(benchmark(), strict=False)
    assert (found.name, found.agent_name, found.num_repeats) == ("colours", "colours_benchmark_agent", 5)
    assert found.dataset.jsonl_fpath == Path("benchmarks/colours/data/colours.jsonl")
    assert found.dataset.prepare_script == Path("benchmarks/colours/prepare.py")
    assert found.dataset.prompt_config is None


def test_a_benchmark_in_a_group_has_the_groups_name_before_its_own(benchmark):
    assert BenchmarkConfig.from_config_path(benchmark(name="shades/colours")).name == "shades/colours"


def test_a_flavour_beside_a_benchmarks_own_file_has_the_name_of_its_data_set(benchmark, write):
    benchmark()
    flavour = write("benchmarks/colours/config_dark.yaml", BENCHMARK.replace("- name: colours", "- name: dark-colours"))
    assert BenchmarkConfig.from_config_path(flavour).name == "dark-colours"


def test_a_configuration_without_a_benchmark_data_set_is_none_or_refused(benchmark):
    path = benchmark(COLOURS)
    assert BenchmarkConfig.from_config_path(path, strict=False) is None
    with pytest.raises(ConfigError, match=r"config\.yaml declares no data sets of type benchmark"):
        BenchmarkConfig.from_config_path(path)


def test_a_file_that_is_not_there_is_told(here):
    with pytest.raises(ConfigPathNotFoundError, match="no configuration file of a benchmark at"):
        BenchmarkConfig.from_config_path(here / "nowhere.yaml")


def test_a_programs_own_settings_are_parsed_without_command_line_and_environment_file(write, monkeypatch):
    write("env.yaml", "colour: grey\n")
    write("model.yaml", MODEL)
    monkeypatch.setattr("sys.argv", ["program", "+colour=red"])
    settings = {**GlobalConfigDictParserConfig.NO_MODEL_GLOBAL_CONFIG_DICT, "config_paths": ["model.yaml"]}
    cfg = GlobalConfigDictParser().parse_no_environment(initial_global_config_dict=settings)
    assert "colour" not in cfg
    assert cfg.policy_model.responses_api_models.openai_model.openai_model == "no-model"

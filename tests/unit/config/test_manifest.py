"""The manifest of an environment: its fields, what each profile needs, and what is said of a wrong one."""

import contextlib

import jsonschema
import pytest
import yaml
from yaml.scanner import Scanner

from rollbook import EnvironmentManifest, manifest_json_schema
from rollbook.config.manifest import read_manifest
from rollbook.config.placed_yaml import read_placed_yaml
from rollbook.errors import ConfigError

WHOLE = {
    "name": "colours",
    "version": "0.1.0",
    "kind": "environment",
    "integration_profile": "custom-gym-verifier",
    "domain": "other",
    "description": "Names colours.",
    "modality": "text",
    "authors": ["somebody"],
    "reward": {"range": [0, 1], "higher_is_better": True},
    "resources_server": "colours",
    "agent_server": "simple_agent",
    "model_server": "policy_model",
    "datasets": [{"name": "example", "type": "example", "jsonl_fpath": "resources_servers/colours/data/example.jsonl"}],
}
ABSENT = object()


def changed(**fields):
    return {key: value for key, value in (WHOLE | fields).items() if value is not ABSENT}


@pytest.fixture
def read(tmp_path):
    def write(content):
        path = tmp_path / "manifest.yaml"
        text = content if isinstance(content, (str, bytes)) else yaml.safe_dump(content, sort_keys=False)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_manifest(path)

    return write


def test_what_a_manifest_leaves_out_is_what_most_environments_are(read):
    told = read(WHOLE)
    assert (told.experimental, told.licensing, told.determinism, told.lifecycle) == (
        True,
        "unknown",
        "unknown",
        "active",
    )
    assert (told.config_path, told.prompt_source, told.datasets[0].num_repeats) == ("config.yaml", "template", 1)


BENCHMARK = {"kind": "benchmark", "canonical_split": "benchmark", "standard_prompt_config": "prompt.yaml"}
RULES = [
    ({"resources_server": ABSENT}, "resources_server: the profile custom-gym-verifier needs it; write the folder"),
    ({"resources_server": None}, "resources_server: the profile custom-gym-verifier needs it"),
    ({"model_server": ABSENT}, "model_server: the profile custom-gym-verifier needs it"),
    (
        {"integration_profile": "custom-gym-agent-loop", "model_server": ABSENT, "resources_server": None},
        "model_server: the profile custom-gym-agent-loop needs it; write the model server's name",
    ),
    (
        {"integration_profile": "external-rollout-driver"},
        "rollout_driver: the profile external-rollout-driver needs it",
    ),
    ({"rollout_driver": "a:b"}, "rollout_driver: the profile custom-gym-verifier has none; take it out"),
    (BENCHMARK | {"canonical_split": None}, "canonical_split: a benchmark needs it; write the split"),
    (BENCHMARK | {"standard_prompt_config": ABSENT}, "standard_prompt_config: a benchmark whose prompts come from a"),
    (
        BENCHMARK | {"prompt_source": "prepared"},
        "standard_prompt_config: prepared rows have their prompts; take it out",
    ),
]
FINE = [
    {},
    BENCHMARK,
    BENCHMARK | {"prompt_source": "prepared", "standard_prompt_config": ABSENT},
    BENCHMARK | {"prompt_source": "agent", "standard_prompt_config": ABSENT},
    {"integration_profile": "custom-gym-agent-loop", "resources_server": None},
    {"integration_profile": "external-agent-loop", "resources_server": None, "model_server": None},
    {"integration_profile": "external-rollout-driver", "rollout_driver": "my.driver:run", "model_server": ABSENT},
    {"licensing": "Apache-2.0 OR (MIT AND CC-BY-4.0)", "reward": {"range": [0, 0], "higher_is_better": False}},
    {"adopted_from": {"source": "https://x.org", "ref": "v1", "reconciled": False}, "lifecycle": "deprecated"},
]
FIELDS = [
    ({"name": ABSENT}, "1: name is missing; write name: the name of its folder"),
    ({"name": "../up"}, "1: name is '../up'; write the name of its folder"),
    ({"version": 0.1}, "2: version is 0.1; write a version in quotes"),
    ({"experimental": "yes"}, "experimental is 'yes'; write true or false"),
    ({"kind": "game"}, "3: kind is 'game'; write environment or benchmark"),
    (
        {"integration_profile": "mine"},
        "4: integration_profile is 'mine'; write one of custom-gym-verifier, custom-gym-ag",
    ),
    ({"domain": "maths"}, "5: domain is 'maths'; write one of math, coding, agent"),
    ({"description": " "}, "description is ' '; write one sentence about it"),
    ({"licensing": "Apache 2.0"}, "licensing is 'Apache 2.0'; write an SPDX expression such as Apache-2.0"),
    ({"licensing": "(MIT"}, "licensing is '(MIT'; write an SPDX"),
    ({"authors": []}, "authors is []; write [<name>, …], at least one"),
    ({"authors": ["a", "a"]}, "authors is ['a', 'a']; write [<name>, …], at least one and each once"),
    ({"authors": ["a", 3]}, "authors.1 is 3; write [<name>"),
    ({"reward": 3}, "reward is 3; write {range: [<lowest>, <highest>], higher_is_better: true}"),
    ({"reward": {"range": [0, 1]}}, "reward.higher_is_better is missing; write true or false"),
    (
        {"datasets": [{"name": "x", "type": "test", "jsonl_fpath": "x"}]},
        "datasets.0.type is 'test'; write one of train",
    ),
    ({"datasets": [{**WHOLE["datasets"][0], "num_repeats": 0}]}, "datasets.0.num_repeats is 0; write a whole number"),
    ({"datasets": [{**WHOLE["datasets"][0], "license": "x"}]}, "datasets.0.license is no field of a manifest; take it"),
    ({"licence": "MIT"}, "22: licence is no field of a manifest; take it out. Did you mean `lifecycle` or "),
    ({"config_path": "/etc/passwd"}, "config_path is '/etc/passwd'; write a YAML file, relative"),
    ({"lifecycle": "x" * 500}, "lifecycle is '" + "x" * 59 + "…; write active or deprecated"),
] + [
    ({"reward": {"range": ends, "higher_is_better": True}}, f"reward.range is {ends!r}; write [<lowest>, <highest>]")
    for ends in ([0, 1, 2], ["a", "b"], {"low": 0}, [1, 0], [float("nan"), 1], [False, True], 5, [0, float("inf")])
]


@pytest.mark.parametrize(("fields", "words"), [*RULES, *FIELDS])
def test_what_a_manifest_cannot_say_is_named_with_what_to_write(read, fields, words):
    with pytest.raises(ConfigError) as raised:
        read(changed(**fields))
    [line] = str(raised.value).splitlines()
    assert "manifest.yaml:" in line
    assert words in line


@pytest.mark.parametrize("fields", FINE)
def test_what_a_profile_does_not_need_may_be_absent(read, fields):
    assert isinstance(read(changed(**fields)), EnvironmentManifest)


def test_everything_that_is_wrong_is_told_at_once_with_its_line(read):
    with pytest.raises(ConfigError) as raised:
        read(changed(kind="game", authors="me", agent_server=ABSENT))
    places = [line.split("manifest.yaml:")[1].split(" is ")[0] for line in str(raised.value).splitlines()]
    assert places == ["3: kind", "8: authors", "1: agent_server"]


BOMB = "a: &a [x, x]\nb: &b [*a, *a]\nauthors: [*b, *b]\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- name: x\n", "holds a list; a manifest is a mapping: write `field: value` lines"),
        ("", "holds nothing; a manifest is a mapping"),
        ("hello\n", "holds one value; a manifest is a mapping"),
        (BOMB, "manifest.yaml:2: an alias (*a) stands for other text; write it out"),
        ("a: &a [*a]\n", "manifest.yaml:1: an alias (*a) stands for other text"),
        ("name: x\nname: y\n", "manifest.yaml:2: `name` stands twice; keep one"),
        ("reward: {range: [0, 1], range: [0, 2]}\n", "manifest.yaml:1: `range` stands twice"),
        ("name: [x\n", "malformed YAML: "),
        ("name: !!python/object/apply:os.system [id]\n", "manifest.yaml:1: malformed YAML: could not determine a"),
        ("a: 1\n---\nb: 2\n", "malformed YAML: but found another document"),
        ("name: \0\n", "cannot be read as YAML: unacceptable character"),
        ("a: " + "[" * 5000, "values are nested more than 40 deep"),
        ("a: 2024-13-45\n", ":1: malformed YAML: `2024-13-45` is no timestamp"),
        ("a: 1\nexperimental: !!bool maybe\n", "manifest.yaml:2: malformed YAML: `maybe` is no bool"),
        ("version: !!timestamp foo\n", "manifest.yaml:1: malformed YAML: `foo` is no timestamp"),
        ("version: !!int ''\n", "manifest.yaml:1: malformed YAML: `` is no int"),
        ("version: 0x" + "f" * 6000, "version is a number of thousands of digits; write a version in quotes"),
        (f"reward: {{range: [0, 1{'0' * 400}], higher_is_better: true}}", "two numbers, the lower one first"),
        (b"name: \xff\n", "cannot be read: it is not UTF-8 text (byte 6); save it as UTF-8"),
        ("a: " + "x" * (1 << 20), "is larger than 1048576 bytes"),
    ],
)
def test_a_file_that_is_no_manifest_is_an_error_with_its_line(read, text, words):
    with pytest.raises(ConfigError) as raised:
        read(text)
    assert words in str(raised.value)


@pytest.mark.parametrize(("deep", "refused"), [(39, False), (40, True)])
def test_values_are_nested_forty_deep_at_most(tmp_path, deep, refused):
    file = tmp_path / "deep.yaml"
    file.write_text(f"a: {'[' * deep}x{']' * deep}\n")
    with pytest.raises(ConfigError, match="more than 40 deep") if refused else contextlib.nullcontext():
        read_placed_yaml(file, "a manifest")


def test_a_manifest_is_gone_through_once(read, monkeypatch):
    begun = []
    begin = Scanner.__init__
    monkeypatch.setattr(Scanner, "__init__", lambda scanner: (begun.append(scanner), begin(scanner))[1])
    read(yaml.safe_dump(WHOLE))
    assert len(begun) == 1


def test_a_byte_order_mark_is_no_part_of_the_first_field(read):
    assert read(b"\xef\xbb\xbf" + yaml.safe_dump(WHOLE).encode()).name == "colours"


def test_a_file_that_is_not_there_is_told_apart_from_one_that_is_wrong(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_manifest(tmp_path / "manifest.yaml")


@pytest.fixture(scope="module")
def schema():
    published = manifest_json_schema()
    jsonschema.Draft202012Validator.check_schema(published)
    return jsonschema.Draft202012Validator(published)


@pytest.mark.parametrize("fields", FINE)
def test_the_published_schema_admits_what_the_model_admits(schema, fields):
    assert list(schema.iter_errors(changed(**fields))) == []


@pytest.mark.parametrize("fields", [fields for fields, _ in RULES])
def test_the_published_schema_knows_what_profiles_and_benchmarks_need(schema, fields):
    assert list(schema.iter_errors(changed(**fields)))

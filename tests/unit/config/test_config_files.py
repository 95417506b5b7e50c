"""Configuration files: includes, their order, and what a file can do wrong."""

import logging

import pytest

from rollbook.errors import ConfigError, ConfigInterpolationError, ConfigPathNotFoundError, MalformedConfigPathsError

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


def test_an_included_file_comes_before_the_one_that_includes_it(write, parse):
    write("base.yaml", "x: base\ny: base\nlist: [1, 2]\nnested: {a: 1, b: 1}\n")
    write("top.yaml", "config_paths: [base.yaml]\nx: top\nlist: [3]\nnested: {b: 2}\n")
    cfg = parse("+config_paths=[top.yaml]")
    assert (cfg.x, cfg.y, cfg.list, cfg.nested) == ("top", "base", [3], {"a": 1, "b": 2})


def test_a_later_file_overrides_an_earlier_one(write, parse):
    write("a.yaml", "x: a\n")
    write("b.yaml", "x: b\n")
    assert parse("+config_paths=[a.yaml,b.yaml]").x == "b"
    assert parse("+config_paths=[b.yaml,a.yaml]").x == "a"


def test_a_file_reached_twice_is_merged_once_with_a_note(write, parse, caplog):
    write("base.yaml", "x: base\n")
    write("a.yaml", "config_paths: [base.yaml]\nx: a\n")
    write("b.yaml", "config_paths: [base.yaml]\ny: b\n")
    with caplog.at_level(logging.WARNING):
        cfg = parse("+config_paths=[a.yaml,b.yaml]")
    assert cfg.x == "a"
    assert "base.yaml is named more than once" in caplog.text


def test_files_that_include_one_another_are_an_error_that_names_the_chain(write, parse):
    write("a.yaml", "config_paths: [b.yaml]\n")
    write("b.yaml", "config_paths: [c.yaml]\n")
    write("c.yaml", "config_paths: [./a.yaml]\n")
    with pytest.raises(ConfigError, match=r"include one another: .*a\.yaml → .*b\.yaml → .*c\.yaml → .*a\.yaml"):
        parse("+config_paths=[a.yaml]")


def test_a_file_that_includes_itself_is_an_error(write, parse):
    write("a.yaml", "config_paths: [a.yaml]\n")
    with pytest.raises(ConfigError, match="include one another"):
        parse("+config_paths=[a.yaml]")


def test_an_include_may_interpolate_a_key_of_the_command_line(write, parse):
    write("small.yaml", "size: small\n")
    write("a.yaml", "config_paths: ['${which}.yaml']\n")
    assert parse("+config_paths=[a.yaml]", "+which=small").size == "small"


def test_an_include_that_interpolates_nothing_is_an_error(write, parse):
    write("a.yaml", "config_paths: ['${which}.yaml']\n")
    with pytest.raises(ConfigInterpolationError, match=r"a\.yaml.*config_paths"):
        parse("+config_paths=[a.yaml]")


def test_a_missing_file_is_answered_with_roots_and_close_names(here, write, parse):
    write("colours.yaml", "x: 1\n")
    with pytest.raises(ConfigPathNotFoundError) as caught:
        parse("+config_paths=[colour.yaml]")
    assert isinstance(caught.value, FileNotFoundError)
    text = str(caught.value)
    assert "colour.yaml" in text
    assert str(here) in text
    assert "Did you mean colours.yaml?" in text


def test_a_missing_include_names_the_file_that_asked_for_it(write, parse):
    write("a.yaml", "config_paths: [nowhere.yaml]\n")
    with pytest.raises(ConfigPathNotFoundError, match=r"nowhere\.yaml.*|named in .*a\.yaml"):
        parse("+config_paths=[a.yaml]")


@pytest.mark.parametrize(
    ("value", "kind"),
    [("a.yaml", "text"), ("{a: 1}", "mapping"), ("[1]", "list that holds a int"), ("7", "int"), ("[[a.yaml]]", "list")],
)
def test_config_paths_is_a_list_of_strings_and_nothing_else(parse, value, kind):
    with pytest.raises(MalformedConfigPathsError, match=f"`config_paths` is a {kind}"):
        parse(f"+config_paths={value}")


def test_an_include_list_of_another_kind_names_its_file(write, parse):
    write("a.yaml", "config_paths: b.yaml\n")
    with pytest.raises(MalformedConfigPathsError, match=r"a\.yaml: `config_paths` is a text"):
        parse("+config_paths=[a.yaml]")


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("a: [1\nb: 2\n", "line 2, column 2", "expected ',' or ']'"),
        ("a: 1\na: 2\n", "line 2, column 1", "duplicate key a"),
        ("a:\n\t- 1\n", "line 2, column 1", "cannot start any token"),
        ("a: !secret 1\n", "line 1, column 4", "!secret"),
        ("a: {b: ???}\n", "line 1, column 8", "write '???' in quotes"),
        ('a: "open\n', "line 2, column 1", "unexpected end"),
    ],
)
def test_malformed_yaml_names_file_line_and_column(write, parse, text, place, problem):
    path = write("bad.yaml", text)
    with pytest.raises(ConfigError) as caught:
        parse("+config_paths=[bad.yaml]")
    message = str(caught.value)
    assert f"malformed YAML in {path}, {place}" in message
    assert problem in message


def test_a_file_that_is_no_text_is_named(here, parse):
    (here / "bad.yaml").write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigError, match=r"bad\.yaml is not UTF-8 text \(byte 3\)"):
        parse("+config_paths=[bad.yaml]")


@pytest.mark.parametrize(("text", "found"), [("- 1\n", "a list"), ("3\n", "one value"), ("hello\n", "one value")])
def test_the_top_of_a_file_is_a_mapping(write, parse, text, found):
    write("bad.yaml", text)
    with pytest.raises(ConfigError, match=rf"bad\.yaml holds {found}.*; a configuration is a mapping"):
        parse("+config_paths=[bad.yaml]")


def test_a_lone_key_without_a_value_is_a_mapping(write, parse):
    write("a.yaml", "hello:\n")
    assert parse("+config_paths=[a.yaml]").hello is None


def test_a_list_that_meets_a_mapping_names_path_and_both_sources(write, parse):
    write("a.yaml", "x: {y: [1]}\n")
    write("b.yaml", "x: {y: {z: 1}}\n")
    with pytest.raises(ConfigError, match=r"`x\.y` is a mapping in .*b\.yaml and a list.* in .*a\.yaml"):
        parse("+config_paths=[a.yaml,b.yaml]")


def test_an_empty_file_is_an_empty_configuration(write, parse):
    write("empty.yaml", "# nothing\n")
    assert parse("+config_paths=[empty.yaml]").dry_run is False


def test_a_malformed_interpolation_names_file_and_dotted_path_but_not_its_text(write, parse):
    write("bad.yaml", "a:\n  b:\n  - 'sk-verysecret ${open'\n")
    with pytest.raises(ConfigInterpolationError) as caught:
        parse("+config_paths=[bad.yaml]")
    assert "bad.yaml: `a.b[0]`" in str(caught.value)
    assert "verysecret" not in str(caught.value)


def test_a_block_that_repeats_itself_by_an_alias_is_an_error(write, parse):
    write("a.yaml", "a: &x\n  b: *x\n")
    with pytest.raises(ConfigError, match=r"a\.yaml: a YAML alias"):
        parse("+config_paths=[a.yaml]")


@pytest.mark.parametrize("text", ["\ufeffx: 1\n", "x: 1\r\ny: 2\r\n"])
def test_a_byte_order_mark_and_windows_line_ends_are_accepted(here, parse, text):
    (here / "a.yaml").write_bytes(text.encode())
    assert parse("+config_paths=[a.yaml]").x == 1


def test_a_folder_is_no_configuration_file(here, parse):
    (here / "a.yaml").mkdir()
    with pytest.raises(ConfigPathNotFoundError):
        parse("+config_paths=[a.yaml]")

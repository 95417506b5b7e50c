"""Command-line overrides: what they set, what they remove, and what cannot be read."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from rollbook.config.files import configuration, plain
from rollbook.config.overrides import apply_overrides, parse_overrides
from rollbook.errors import ConfigError


def applied(tree, *tokens, lenient=False):
    return plain(apply_overrides(configuration(tree, "test"), parse_overrides(tokens), lenient=lenient))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1", 1),
        ("-3", -3),
        ("0.5", 0.5),
        ("1e5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("1_000", 1000),
        ("01", "01"),
        ("true", True),
        ("False", False),
        ("null", None),
        ("", ""),
        ("word", "word"),
        ("a:b", "a:b"),
        ("-x", "-x"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("/an/absolute-path.yaml", "/an/absolute-path.yaml"),
        ("[a.yaml,b.yaml]", ["a.yaml", "b.yaml"]),
        ("[1, true, x]", [1, True, "x"]),
        ("[]", []),
        ("'two words'", "two words"),
        ('"a,b"', "a,b"),
        ("{a: 1, b: [x, {c: d}]}", {"a": 1, "b": ["x", {"c": "d"}]}),
        ("${other}", "${other}"),
        ("${oc.env:HOME}", "${oc.env:HOME}"),
        ("???", "???"),
    ],
)
def test_values_are_read_as_hydra_reads_them(text, value):
    (override,) = parse_overrides([f"+a.b={text}"])
    assert override.value == value
    assert type(override.value) is type(value)
    assert override.path == ("a", "b")


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "-3",
        "0.5",
        "true",
        "NULL",
        "a:b",
        "x/y.z",
        "http://h:1/v1?q",
        "+1",
        "[a,1,b.c]",
        "a|b*c",
        "127.0.0.1",
        "10.0.0.200:8080",
    ],
)
def test_the_plain_reader_agrees_with_hydras_grammar(text):
    (override,) = parse_overrides([f"k={text}"])
    theirs = OverridesParser.create().parse_override(f"k={text}").value()
    assert override.value == theirs
    assert type(override.value) is type(theirs)


@pytest.mark.parametrize("sign", ["", "+", "++"])
def test_the_three_signs_set_new_and_existing_keys(sign):
    assert applied({"a": {"x": 1}}, f"{sign}a.x=2", f"{sign}b.c=3") == {"a": {"x": 2}, "b": {"c": 3}}


def test_a_mapping_is_merged_and_a_list_replaced():
    assert applied({"a": {"x": 1, "l": [1, 2]}}, "a={y: 2, l: [3]}") == {"a": {"x": 1, "y": 2, "l": [3]}}


def test_tokens_apply_in_the_order_they_were_typed():
    assert applied({"a": {"x": 1, "y": 1}}, "~a", "+a.z=1") == {"a": {"z": 1}}
    assert applied({"a": {"x": 1}}, "a.x=2", "a.x=3") == {"a": {"x": 3}}


def test_a_value_may_replace_a_mapping_and_the_other_way_round():
    assert applied({"a": {"x": 1}}, "a=5") == {"a": 5}


def test_a_removed_key_is_gone():
    assert applied({"a": {"x": 1, "y": 2}}, "~a.x") == {"a": {"y": 2}}


def test_a_removal_with_a_value_needs_that_value():
    assert applied({"a": 1}, "~a=1") == {}
    with pytest.raises(ConfigError, match="another value"):
        applied({"a": 1}, "~a=2")


def test_the_removal_of_a_key_that_is_not_there_names_close_ones():
    with pytest.raises(ConfigError, match=r"~a\.colours: there is no such key.* Did you mean `colour`"):
        applied({"a": {"colour": 1}}, "~a.colours")


def test_the_removal_of_a_key_that_is_not_there_is_forgiven_where_only_a_part_is_known():
    assert applied({}, "~a.b", lenient=True) == {}


def test_a_missing_mark_covers_nothing():
    assert OmegaConf.is_missing(OmegaConf.create(applied({}, "a=???")), "a")


@pytest.mark.parametrize("token", ["--flag", "no value", "=1", "key", "a..b=1", "a.=1", "a/b=1", "a@p=1", "1a=2", ""])
def test_what_is_no_override_is_refused(token):
    with pytest.raises(ConfigError, match=r"is no override|is empty"):
        parse_overrides([token])


@pytest.mark.parametrize("token", ["k=sk-secret hunter,2=", "api_key='sk-hunter", "api_key=a=hunter"])
def test_a_token_that_cannot_be_read_is_shown_without_its_value(token):
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        parse_overrides([token])
    assert "hunter" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("value", ["a,b", "range(1,3)"])
def test_a_sweep_is_refused_and_a_list_is_offered(value):
    with pytest.raises(ConfigError, match=r"sweep over several values; for a list write k=\[a,b\]"):
        parse_overrides([f"k={value}"])


@pytest.mark.parametrize(
    ("tree", "token"),
    [({"a": [1]}, "a.x.y=1"), ({"a": [1]}, "a.3.y=1"), ({"a": {"b": 1}}, "a=[1]"), ({"a": [1]}, "a={b: 1}")],
)
def test_a_list_that_meets_a_mapping_does_not_fit(tree, token):
    with pytest.raises(ConfigError, match=rf"{token.split('=')[0]}=… does not fit.*~<key>"):
        applied(tree, token)


def test_what_does_not_fit_can_be_removed_first():
    assert applied({"a": {"b": 1}}, "~a", "a=[1]") == {"a": [1]}


def test_a_number_in_a_path_is_a_place_in_a_list():
    tree = {"a": [{"n": 1, "m": 1}, {"n": 2}]}
    assert applied(tree, "a.0.n=5", "~a.0.m", "~a.1") == {"a": [{"n": 5}]}


def test_setting_below_an_interpolated_block_leaves_the_block_it_points_at_alone():
    assert applied({"a": "${x}", "x": {"b": 0}}, "a.b=1")["x"] == {"b": 0}


def test_a_list_of_an_override_is_not_merged_into_a_mapping_of_the_same_name():
    assert applied({"l": [1, 2]}, "l=[3]") == {"l": [3]}

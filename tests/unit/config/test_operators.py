"""Merge operators: move, copy, delete, rename."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollbook.config.files import Places, Source, configuration, merged, plain, stacked
from rollbook.config.operators import apply_operators
from rollbook.config.tree import laid_over
from rollbook.errors import AmbiguousAgentRenameError, ConfigError, InheritPathNotFoundError


def after(tree):
    return apply_operators(plain(configuration(tree, "test")), Places())


@pytest.mark.parametrize(
    ("tree", "result"),
    [
        ({"a": {"x": 1, "y": 1}, "b": {"_inherit_from": "a", "y": 2}}, {"b": {"x": 1, "y": 2}}),
        ({"a": {"x": 1}, "b": {"_copy": "a", "y": 2}}, {"a": {"x": 1}, "b": {"x": 1, "y": 2}}),
        (
            {"a": {"x": {"p": 1, "q": 1}}, "b": {"_copy": "a.x", "q": 2}},
            {"a": {"x": {"p": 1, "q": 1}}, "b": {"p": 1, "q": 2}},
        ),
        ({"a": {"x": 5}, "b": {"v": "${inherit_from:a.x}"}}, {"a": {}, "b": {"v": 5}}),
        ({"a": {"x": [1, 2]}, "b": {"v": "${copy:a.x}"}}, {"a": {"x": [1, 2]}, "b": {"v": [1, 2]}}),
        ({"a": {"x": [7]}, "b": {"_copy": "a.x[0]"}}, None),
        ({"a": {"x": "???"}, "b": "${inherit_from:a.x}"}, {"a": {}, "b": "???"}),
        ({"a": {"x": "${k}"}, "b": "${copy:a.x}", "k": 1}, {"a": {"x": "${k}"}, "b": "${k}", "k": 1}),
        ({"a": {"x": 1, "y": 2, "z": 3, "_delete_key": "x, y"}}, {"a": {"z": 3}}),
        ({"a": {"x": 1, "y": 2, "_delete_key": ["y"]}}, {"a": {"x": 1}}),
        ({"a": {"x": 1, "y": 2}, "b": {"_copy": "a", "_delete_key": "x"}}, {"a": {"x": 1, "y": 2}, "b": {"y": 2}}),
        ({"a": {"x": 1, "_delete_key": "x", "y": 1}, "b": {"_copy": "a"}}, {"a": {"y": 1}, "b": {"y": 1}}),
        ({"c": {"_inherit_from": "b"}, "b": {"_inherit_from": "a"}, "a": {"x": 1}}, {"c": {"x": 1}}),
        (
            {"c": {"_copy": "b.q"}, "b": {"_copy": "a"}, "a": {"q": {"x": 1}}},
            {"c": {"x": 1}, "b": {"q": {"x": 1}}, "a": {"q": {"x": 1}}},
        ),
        ({"l": [{"_copy": "a"}], "a": {"x": 1}}, {"l": [{"x": 1}], "a": {"x": 1}}),
        ({"a": {"b": {"_copy": "a.c", "y": 1}, "c": {"x": 1}}}, {"a": {"b": {"x": 1, "y": 1}, "c": {"x": 1}}}),
        (
            {"a": {"x": 1}, "b": {"_inherit_from": "a"}, "c": {"_inherit_from": "a", "y": 2}},
            {"b": {"x": 1}, "c": {"x": 1, "y": 2}},
        ),
    ],
)
def test_operators_do_what_the_table_says(tree, result):
    if result is None:
        with pytest.raises(InheritPathNotFoundError):
            after(tree)
    else:
        assert after(tree) == result


def test_a_key_to_delete_that_is_not_there_is_noted(caplog):
    assert after({"a": {"x": 1, "_delete_key": "x,y"}}) == {"a": {}}
    assert "`a`: _delete_key names `y`, which is not there" in caplog.text


def test_the_source_itself_is_never_shared():
    result = after({"a": {"x": {"p": 1}}, "b": {"_copy": "a"}})
    result["b"]["x"]["p"] = 2
    assert result["a"]["x"]["p"] == 1


@pytest.mark.parametrize("value", ["_inherit_from", "_copy"])
def test_a_path_that_leads_nowhere_is_named_with_close_ones(value):
    with pytest.raises(
        InheritPathNotFoundError, match=rf"`b`: `{value}: a\.yz` names nothing: there is no `yz` in `a`.*`xyz`"
    ):
        after({"a": {"xyz": 1}, "b": {value: "a.yz"}})


def test_operators_in_a_circle_are_an_error_that_names_the_chain():
    with pytest.raises(ConfigError, match="circle: a → b → a"):
        after({"a": {"_copy": "b"}, "b": {"_copy": "a"}})


def test_a_block_cannot_inherit_from_a_block_that_holds_it():
    with pytest.raises(ConfigError, match="names a block that holds it"):
        after({"a": {"b": {"_copy": "a"}}})


def test_keys_cannot_be_added_to_a_scalar():
    with pytest.raises(ConfigError, match=r"`b` adds keys to `a\.x`, which is no mapping"):
        after({"a": {"x": 1}, "b": {"_copy": "a.x", "y": 2}})


AGENT = {"responses_api_agents": {"simple_agent": {"entrypoint": "app.py", "max_steps": 1}}}


def test_moving_an_agent_renames_it_and_references_follow():
    front = {"environment_servers": {"legacy_agent": {"agent_server": {"type": "responses_api_agents", "name": "old"}}}}
    result = after({"old": AGENT, "new": {"_inherit_from": "old"}, "front": front})
    assert "old" not in result
    assert result["new"] == AGENT
    assert result["front"]["environment_servers"]["legacy_agent"]["agent_server"]["name"] == "new"


def test_an_agent_claimed_by_several_blocks_is_an_error():
    with pytest.raises(AmbiguousAgentRenameError, match="`one`, `two` each move the agent `old`"):
        after({"old": AGENT, "one": {"_inherit_from": "old"}, "two": {"_inherit_from": "old"}})


def test_a_later_source_can_add_to_an_inherited_value():
    low = configuration({"a": {"x": 1}, "b": "${inherit_from:a}"}, "low")
    high = configuration({"b": {"y": 2}}, "high")
    assert apply_operators(plain(merged(low, high)), Places()) == {"b": {"x": 1, "y": 2}}


def test_an_error_names_the_file(write, parse):
    write("a.yaml", "b: {_copy: nowhere}\n")
    with pytest.raises(InheritPathNotFoundError, match=r"`b` \(in .*a\.yaml\)"):
        parse("+config_paths=[a.yaml]")


keys = st.sampled_from("abc")
trees = st.recursive(
    st.integers(0, 3) | st.sampled_from(["x", "???"]) | st.lists(st.integers(0, 2), max_size=2),
    lambda inner: st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
mappings = st.dictionaries(keys, trees, max_size=3)


@given(mappings, mappings)
def test_laying_over_is_what_omegaconf_calls_merging(base, over):
    theirs = _stacked_or_none(base, over)
    assert theirs is None or laid_over(base, over) == theirs


def _stacked_or_none(base, over):
    """OmegaConf refuses to merge a list and a mapping; operators replace one by the other."""
    try:
        return plain(
            stacked([Source("base", configuration(base, "base")), Source("over", configuration(over, "over"))])
        )
    except ConfigError:
        return None


@given(mappings)
def test_laying_a_tree_over_itself_changes_nothing(tree):
    assert laid_over(tree, tree) == tree

"""The vocabulary of failures: which words are known, and what happens to others."""

import logging

import pytest

from rollbook.records.failure_kinds import REGISTERED_KINDS, is_namespaced, is_registered, validate_failure_kind


@pytest.mark.parametrize("kind", sorted(REGISTERED_KINDS))
def test_the_vocabulary_is_registered_and_bare(kind):
    assert is_registered(kind)
    assert not is_namespaced(kind)


@pytest.mark.parametrize("kind", ["user_sim:gave_up", "a:b"])
def test_a_kind_of_a_server_is_namespaced_and_needs_no_registration(kind, caplog):
    assert is_namespaced(kind)
    assert not is_registered(kind)
    assert validate_failure_kind(kind) == kind
    assert caplog.records == []


@pytest.mark.parametrize("kind", ["", ":", "a:", ":b", "A:b", "a:b:c", "a b:c"])
def test_what_only_looks_like_a_namespace_is_none(kind):
    assert not is_namespaced(kind)


def test_an_unknown_kind_is_let_through_with_one_warning(caplog):
    caplog.set_level(logging.WARNING)
    assert [validate_failure_kind("fell_in_a_river") for _ in range(3)] == ["fell_in_a_river"] * 3
    assert len([record for record in caplog.records if "fell_in_a_river" in record.getMessage()]) == 1


def test_no_kind_is_no_kind():
    assert validate_failure_kind(None) is None

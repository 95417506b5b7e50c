"""Which providers there are."""

import importlib.metadata

import pytest

from rollbook.sandbox import (
    DockerCreateConfig,
    LocalProvider,
    SandboxConfigError,
    SandboxCreateError,
    SandboxProvider,
    create_provider,
    get_provider_class,
    list_providers,
    register_provider,
    registry,
)
from unit.sandbox.stand_in import StandInProvider


@pytest.fixture(autouse=True)
def _own_registry(monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})


def test_the_local_provider_is_there():
    assert list_providers() == ["local"]
    assert get_provider_class("local") is LocalProvider


def test_a_provider_is_made_with_the_arguments_of_its_block(tmp_path):
    provider = create_provider({"local": {"workspace_root": str(tmp_path)}, "default_metadata": {"a": "b"}})
    assert isinstance(provider, LocalProvider)
    assert isinstance(provider, SandboxProvider)


def test_a_provider_is_returned_as_it_is():
    provider = StandInProvider()
    assert create_provider(provider) is provider


def test_a_registered_provider_is_made_by_its_name():
    register_provider("stand_in", StandInProvider)
    assert list_providers() == ["local", "stand_in"]
    assert create_provider({"stand_in": {"greeting": "hi"}}).options == {"greeting": "hi"}


def test_a_name_is_registered_twice_only_by_override():
    register_provider("stand_in", StandInProvider)
    register_provider("stand_in", StandInProvider)
    with pytest.raises(SandboxConfigError, match="override=True"):
        register_provider("stand_in", LocalProvider)
    register_provider("stand_in", LocalProvider, override=True)
    assert get_provider_class("stand_in") is LocalProvider


def test_the_local_provider_can_be_replaced_only_by_override():
    with pytest.raises(SandboxConfigError, match="'local' is registered already"):
        register_provider("local", StandInProvider)


@pytest.mark.parametrize("group", ["rollbook.sandbox_providers", "nemo_gym.sandbox_providers"])
def test_an_installed_package_adds_a_provider(group, monkeypatch):
    point = importlib.metadata.EntryPoint("remote", "unit.sandbox.stand_in:StandInProvider", group)
    monkeypatch.setattr(registry, "entry_points", lambda group: [point] if group == point.group else [])
    assert list_providers() == ["local", "remote"]
    assert get_provider_class("remote") is StandInProvider


def test_an_unknown_provider_is_refused_with_those_that_there_are():
    with pytest.raises(SandboxConfigError, match=r"'cloud'; there are local\. Register one"):
        create_provider({"cloud": {}})


def test_a_provider_of_the_field_that_is_not_shipped_is_named_as_one():
    with pytest.raises(SandboxConfigError, match="does not ship"):
        create_provider({"e2b": {}})


@pytest.mark.parametrize("make", [lambda: create_provider({"docker": {}}), lambda: DockerCreateConfig(network="x")])
def test_a_container_that_is_not_shipped_says_what_is(make):
    with pytest.raises(SandboxCreateError, match=r"ships the sandbox provider 'local', and no 'docker'.*register"):
        make()

"""What a sandbox is asked for."""

from dataclasses import replace

import pytest

from rollbook.sandbox import (
    SandboxConfigError,
    SandboxEndpoint,
    SandboxExecResult,
    SandboxResources,
    SandboxSpec,
    SandboxStatus,
)


def test_resources_are_read_from_a_block():
    assert SandboxResources.from_mapping({"cpu": 2, "memory_mib": 512}) == SandboxResources(cpu=2, memory_mib=512)


@pytest.mark.parametrize("nothing", [None, {}, SandboxResources()])
def test_nothing_named_is_nothing_asked_for(nothing):
    assert SandboxResources.from_mapping(nothing) == SandboxResources()


def test_an_unknown_resource_is_refused_with_those_that_there_are():
    with pytest.raises(SandboxConfigError, match=r"unknown sandbox resources memory; known are cpu, memory_mib"):
        SandboxResources.from_mapping({"memory": 512})


def test_a_spec_reads_its_resources_from_a_mapping():
    assert SandboxSpec(resources={"disk_gib": 3}).resources == SandboxResources(disk_gib=3)


def test_a_spec_can_be_copied_with_a_change():
    spec = SandboxSpec(image="a", env={"A": "1"}, ports=[80])
    assert replace(spec, image="b") == SandboxSpec(image="b", env={"A": "1"}, ports=(80,))


def test_two_specs_share_no_options():
    first, second = SandboxSpec(), SandboxSpec()
    first.provider_options["network_policy"] = {}
    assert second.provider_options == {}


def test_a_status_is_its_word():
    assert SandboxStatus("running") is SandboxStatus.RUNNING
    assert [str(status) for status in SandboxStatus] == ["starting", "running", "paused", "stopped", "error", "unknown"]


def test_results_and_endpoints_can_be_written_by_position():
    assert SandboxExecResult("out", "err", 3) == SandboxExecResult(stdout="out", stderr="err", return_code=3)
    assert SandboxEndpoint("http://h:1", {"a": "b"}).headers == {"a": "b"}

"""What `from rollbook.sandbox import …` offers, and what importing it costs."""

import ast
import subprocess
import sys

import pytest

import rollbook.sandbox
from architecture.source_tree import PACKAGE


def stub_names():
    stub = ast.parse((PACKAGE / "sandbox" / "__init__.pyi").read_text(encoding="utf-8"))
    return sorted(alias.name for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names)


def test_the_stub_and_the_lazy_names_agree():
    assert stub_names() == rollbook.sandbox.__all__


@pytest.mark.parametrize("name", rollbook.sandbox.__all__)
def test_every_public_name_of_the_room_resolves(name):
    assert getattr(rollbook.sandbox, name) is not None


def test_a_name_that_is_not_public_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = rollbook.sandbox.no_such_name


def test_a_spec_and_a_block_can_be_read_without_anything_heavy():
    code = "from rollbook.sandbox import SandboxSpec, resolve_provider_config\nimport sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"asyncio", "pydantic", "omegaconf", "subprocess"} & set(loaded) == set()


def test_the_face_and_the_room_mean_the_same_access():
    assert rollbook.SandboxAccess is rollbook.sandbox.SandboxAccess

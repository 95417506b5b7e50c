"""Aliases in configurations: some are fine, a few lines that stand for millions of values are not."""

import pytest

from rollbook.config.files import read_yaml
from rollbook.errors import ConfigError


def test_aliases_that_stand_for_millions_of_values_are_refused_before_they_are_written_out(tmp_path):
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 8)}]" for n in range(1, 12)]
    path = tmp_path / "bomb.yaml"
    path.write_text("\n".join(levels))
    with pytest.raises(ConfigError, match=r"bomb\.yaml: its aliases \(\*name\) stand for more than 200000 values"):
        read_yaml(path)


def test_an_alias_that_repeats_a_block_is_read(tmp_path):
    path = tmp_path / "fine.yaml"
    path.write_text("a: &a {b: 1}\nc: *a\n")
    assert read_yaml(path).c.b == 1

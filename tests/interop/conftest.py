"""Both sides with the same environments up, asking the same model endpoint."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from interop.endpoint import Endpoint, knowing
from interop.rows import ENVIRONMENTS, example_rows, write_rows
from interop.sides import THEIR_PYTHON, Head, Side, ours, theirs

REPEATS = 4


@dataclass(frozen=True)
class Field:
    """What the tests have: the endpoint, the rows, and each side with its deployment's head."""

    endpoint: Endpoint
    rows: Path
    sides: dict[str, Side]
    heads: dict[str, Head]
    planned: int

    def collect(self, collector: str, servers: str, output: Path, *words: object) -> list[object]:
        """Return the words that have a side collect from a side's servers."""
        return [
            *["eval", "run", "--no-serve", "-i", self.rows, "-o", output, "--num-repeats", REPEATS],
            *["--concurrency", 4, "+num_repeats_add_seed=true", "+route_failures_to_sidecar=true", *words],
            *self.heads[servers].overrides,
        ]


def _served(url: str) -> list[object]:
    named = [word for name in ENVIRONMENTS for word in ("--resources-server", name)]
    model = ["--model-type", "openai_model", "-m", "known", "--model-url", url, "--model-api-key", "none"]
    return [*named, *model, "++math_with_judge.resources_servers.math_with_judge.should_use_judge=true"]


@pytest.fixture(scope="session")
def field(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Field]:
    """Keep both deployments up for the whole session."""
    if not THEIR_PYTHON:
        pytest.skip("ROLLBOOK_INTEROP_PYTHON names no interpreter with nemo-gym")
    root = tmp_path_factory.mktemp("interop")
    rows = example_rows()
    sides = {"ours": ours(root / "ours"), "theirs": theirs(root / "theirs")}
    with knowing(rows) as endpoint:
        words = _served(endpoint.url)
        with sides["theirs"].deployment(*words) as far, sides["ours"].deployment(*words) as near:
            heads = {"ours": near, "theirs": far}
            yield Field(endpoint, write_rows(root / "in.jsonl", rows), sides, heads, len(rows) * REPEATS)

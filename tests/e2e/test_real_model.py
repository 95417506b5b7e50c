"""A real model: a GGUF file behind llama.cpp's server, through two environments.

Set ROLLBOOK_LLAMA_SERVER to the binary and ROLLBOOK_GGUF_MODEL to the model file; without both, skipped.
"""

import json
import os

import pytest

from rollbook.cli.entry import exit_code_of

BINARY, MODEL = os.environ.get("ROLLBOOK_LLAMA_SERVER"), os.environ.get("ROLLBOOK_GGUF_MODEL")

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(not (BINARY and MODEL), reason="no real model is named"),
]


@pytest.mark.parametrize(
    ("environment", "repeats", "serve"), [("mcqa", 1, "embedded"), ("reasoning_gym", 4, "processes")]
)
def test_a_real_model_is_scored_and_every_rollout_is_accounted_for(environment, repeats, serve, tmp_path):
    output = tmp_path / "r.jsonl"
    code = exit_code_of(
        [
            *["eval", "run", "--resources-server", environment, "--model-type", "local_llama_model", "-m", MODEL],
            *["-o", str(output), "--limit", "2", "--num-repeats", str(repeats), "--serve", serve],
            *["--max-output-tokens", "64", "--temperature", "0.8", "--concurrency", "4"],
        ]
    )
    assert code == 0
    rows = [json.loads(line) for line in output.read_bytes().splitlines()]
    assert len(rows) == 2 * repeats
    for row in rows:
        assert 0.0 <= row["reward"] <= 1.0
        assert row["response"]["usage"]["output_tokens"] > 0

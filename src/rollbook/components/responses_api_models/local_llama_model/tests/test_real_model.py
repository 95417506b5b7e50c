"""Runs a real model: set ROLLBOOK_LLAMA_SERVER (or have llama-server on PATH) and ROLLBOOK_GGUF_MODEL."""

import os
import shutil

import pytest

from responses_api_models.local_llama_model.app import LocalLlamaModel, LocalLlamaModelConfig
from rollbook import BaseServerConfig, NeMoGymResponse, ServerClient
from unit.servers_models.serving import post, serving

BINARY = shutil.which(os.environ.get("ROLLBOOK_LLAMA_SERVER", "llama-server"))
MODEL = os.environ.get("ROLLBOOK_GGUF_MODEL", "")

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(not (BINARY and os.path.isfile(MODEL)), reason="no llama-server binary and GGUF file named"),  # noqa: PTH113  a skip condition
]


@pytest.fixture(scope="module")
def url():
    config = LocalLlamaModelConfig(
        host="127.0.0.1",
        port=1,
        entrypoint="app.py",
        name="policy_model",
        model_path=MODEL,
        llama_server_path=BINARY,
        context_size=512,
        parallel_slots=2,
    )
    model = LocalLlamaModel(config=config, server_client=ServerClient(BaseServerConfig(host="127.0.0.1", port=1), {}))
    with serving(model.build_app()) as served:
        yield served


def test_a_real_model_answers_in_the_responses_dialect(url):
    reply = NeMoGymResponse.model_validate(
        post(f"{url}/v1/responses", {"input": "Count to five.", "max_output_tokens": 12, "temperature": 0}).json()
    )
    assert reply.output_text
    assert 0 < reply.usage.output_tokens <= 12
    assert reply.usage.total_tokens == reply.usage.input_tokens + reply.usage.output_tokens


def test_a_real_model_is_deterministic_without_temperature(url):
    body = {"input": "One, two,", "max_output_tokens": 8, "temperature": 0}
    texts = {NeMoGymResponse.model_validate(post(f"{url}/v1/responses", body).json()).output_text for _ in range(2)}
    assert len(texts) == 1


def test_a_prompt_beyond_a_real_context_ends_by_length(url):
    reply = post(f"{url}/v1/responses", {"input": "word " * 2000, "max_output_tokens": 5}).json()
    assert (reply["status"], reply["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})


def test_a_real_model_is_offered_tools(url):
    tool = {"type": "function", "name": "add", "parameters": {"type": "object", "properties": {}}, "strict": True}
    body = {"input": "Add one and two.", "tools": [tool], "max_output_tokens": 16}
    assert post(f"{url}/v1/responses", body).status == 200

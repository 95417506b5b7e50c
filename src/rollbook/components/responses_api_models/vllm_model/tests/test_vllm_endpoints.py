import json
from collections import Counter

import pytest

from responses_api_models.vllm_model.audio import data_uri, with_audio
from responses_api_models.vllm_model.endpoints import Endpoints, replica_of, urls_in
from responses_api_models.vllm_model.model_config import VLLMModelConfig
from rollbook import ServingError


class Hands:
    """A clock whose hands are set by the test."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self):
        return self.at


def settings(**options):
    given = {"host": "127.0.0.1", "port": 1, "entrypoint": "app.py", "name": "m", "api_key": "k", "model": "m"}
    fixed = {"return_token_id_information": False, "uses_reasoning_parser": True}
    return VLLMModelConfig.model_validate({**given, **fixed, **options})


def test_a_session_stays_with_its_replica_and_sessions_spread():
    homes = [replica_of(f"session-{number}", 4) for number in range(400)]
    assert homes == [replica_of(f"session-{number}", 4) for number in range(400)]
    assert all(50 < count < 150 for count in Counter(homes).values())


def test_a_replica_has_one_client():
    endpoints = Endpoints(settings(base_url=["http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"]))
    clients = {id(endpoints.client_of(f"session-{number}")) for number in range(50)}
    assert len(clients) == 2


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ('"http://a"', ["http://a"]),
        ('["http://a", "http://b"]', ["http://a", "http://b"]),
        ('{"base_url": "http://a"}', ["http://a"]),
        ('{"base_url": ["http://a"]}', ["http://a"]),
    ],
)
def test_an_endpoint_file_names_urls(text, urls):
    assert urls_in(text) == urls


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", "3", "{cut"])
def test_an_endpoint_file_without_urls_is_an_error(text):
    with pytest.raises(ValueError, match=r"endpoint file|Expecting|Unterminated"):
        urls_in(text)


def test_an_endpoint_file_is_read_again_after_its_interval_and_missed_for_a_grace(tmp_path):
    path, now = tmp_path / "endpoint.json", Hands()
    path.write_text(json.dumps({"base_url": "http://127.0.0.1:1/v1"}))
    endpoints = Endpoints(settings(base_url="", endpoint_file=str(path)), now)
    assert endpoints.client_of("s").base_url == "http://127.0.0.1:1/v1"
    path.write_text(json.dumps("http://127.0.0.1:2/v1"))
    now.at = 9.0
    assert endpoints.client_of("s").base_url == "http://127.0.0.1:1/v1"
    now.at = 10.0
    assert endpoints.client_of("s").base_url == "http://127.0.0.1:2/v1"
    path.unlink()
    now.at = 305.0
    assert endpoints.client_of("s").base_url == "http://127.0.0.1:2/v1"
    now.at = 316.0
    with pytest.raises(ServingError, match=r"endpoint\.json"):
        endpoints.client_of("s")


def test_an_endpoint_file_that_is_not_there_yet_is_an_error_that_names_it(tmp_path):
    endpoints = Endpoints(settings(base_url="", endpoint_file=str(tmp_path / "later.json")), Hands())
    with pytest.raises(ServingError, match=r"later\.json"):
        endpoints.client_of("s")


def chat(metadata):
    messages = [{"role": "user", "content": "first"}, {"role": "user", "content": "what is said?"}]
    return {"messages": messages, "metadata": metadata}


def test_audio_goes_before_the_text_of_the_latest_user_message(tmp_path):
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    (tmp_path / "b.mp3").write_bytes(b"ID3")
    body = with_audio(chat({"audio_paths": '["a.wav", "b.mp3"]', "kept": "x"}), str(tmp_path))
    blocks = body["messages"][1]["content"]
    assert [block["type"] for block in blocks] == ["audio_url", "audio_url", "text"]
    assert blocks[0]["audio_url"]["url"] == "data:audio/wav;base64,UklGRg=="
    assert blocks[1]["audio_url"]["url"].startswith("data:audio/mpeg;base64,")
    assert (body["metadata"], body["messages"][0]["content"]) == ({"kept": "x"}, "first")


def test_metadata_that_only_named_audio_is_dropped():
    assert "metadata" not in with_audio(chat({"audio_data": "data:audio/wav;base64,AA=="}), None)


def test_without_audio_the_request_stays_as_it_is():
    assert with_audio(chat({"kept": "x"}), None) == chat({"kept": "x"})


@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"audio_data": "d", "audio_path": "p"}, "more than once"),
        ({"audio_path": "../outside.wav"}, "outside of audio_root"),
        ({"audio_path": "notes.txt"}, "none of"),
    ],
)
def test_audio_that_cannot_be_placed_is_an_error(tmp_path, metadata, words):
    with pytest.raises(ValueError, match=words):
        with_audio(chat(metadata), str(tmp_path))


def test_an_audio_file_needs_a_root():
    with pytest.raises(ValueError, match="audio_root"):
        data_uri("a.wav", None)

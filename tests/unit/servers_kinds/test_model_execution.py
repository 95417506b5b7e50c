import pytest
from starlette.requests import Request

from rollbook import ConfigError, current_capture_context, make_external_capture_handler, start_model_execution
from rollbook.servers.kinds.model_execution import MODEL_EXECUTION


def test_no_call_is_captured():
    assert current_capture_context() is None


def test_a_capture_by_another_program_is_refused_and_never_left_out_in_silence():
    with pytest.raises(ConfigError, match="external_staging"):
        make_external_capture_handler("vllm_worker")


def test_who_answered_a_model_call_is_read_from_its_request():
    request = Request({"type": "http", "headers": []})
    facts = start_model_execution(request, upstream_attempted=True)
    facts.update(response_source="upstream", upstream_status_code=503)
    assert request.scope[MODEL_EXECUTION] == {
        "upstream_attempted": True,
        "response_source": "upstream",
        "upstream_status_code": 503,
    }


def test_a_call_without_a_request_has_its_facts_as_well():
    assert start_model_execution(None, upstream_attempted=False) == {"upstream_attempted": False}

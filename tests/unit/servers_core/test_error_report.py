"""What a server of ours tells beside an error reply."""

import asyncio

import pytest
from aiohttp import ClientConnectorError, ClientResponseError, RequestInfo, ServerDisconnectedError
from fastapi import FastAPI
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from rollbook.records.failure_report import FAILURE_REPORT_HEADER, header_of, reply_failure_kind, report_in_headers
from rollbook.servers.error_report import boundary_of, report_of
from rollbook.servers.errors_replies import install_error_replies
from rollbook.servers.http.embedded_call import EmbeddedRequest, call_embedded, request_scope
from rollbook.servers.http.inner_error import InnerServerError

SERVERS = {
    "resources_server": ["/seed_session", "/verify", "/run"],
    "agent": ["/run", "/v1/responses"],
    "environment": ["/run"],
    "model": ["/v1/chat/completions", "/v1/responses"],
    "harness": ["/other"],
}


def inner(status, body=b"", headers=None):
    return InnerServerError("POST", "http://h/v1", (status, "x"), headers or {}, body)


def hop(error, boundary):
    """Return what the next server is told: the error of a reply that carries the report of `error`."""
    return inner(500, b"", {FAILURE_REPORT_HEADER: header_of(report_of(error, boundary))})


def raised(error, cause=None):
    try:
        raise error from cause
    except type(error) as caught:
        return caught


@pytest.mark.parametrize("boundary", list(SERVERS))
def test_a_server_is_named_by_what_it_answers(boundary):
    app = FastAPI()
    for path in SERVERS[boundary]:
        app.post(path)(lambda: None)
    assert boundary_of(app) == boundary


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (inner(401), "provider_credentials_rejected"),
        (inner(402), "provider_quota_exhausted"),
        (inner(429, b'{"error":{"code":"insufficient_quota"}}'), "provider_quota_exhausted"),
        (inner(429), "provider_unavailable"),
        (inner(503), "provider_unavailable"),
        (inner(400), "model:status_400"),
        (inner(403), "model:status_403"),
        (ServerDisconnectedError(), "transport_peer_drop"),
        (ClientConnectorError(None, OSError("refused")), "transport_unreachable"),
        (TimeoutError(), "transport_timeout"),
        (ValueError("x"), "model:unhandled_error"),
        (raised(ValueError("x"), inner(401)), "provider_credentials_rejected"),
    ],
)
def test_a_model_server_names_what_its_provider_did(error, kind):
    assert report_of(error, "model").kind == kind


def test_a_rejected_credential_is_told_through_every_hop():
    told = hop(hop(hop(inner(401), "model"), "resources_server"), "agent")
    report = report_in_headers(told.headers)
    assert [(event.boundary, event.http_status) for _, event in report.chain()] == [
        ("agent", 500),
        ("resources_server", 500),
        ("model", 401),
    ]
    assert report.kind == reply_failure_kind(told.headers) == "provider_credentials_rejected"


@pytest.mark.parametrize("boundary", ["agent", "resources_server", "environment"])
def test_a_401_of_a_server_in_between_says_nothing_of_a_provider(boundary):
    assert report_of(inner(401), boundary).kind is None


def test_only_an_explicit_cause_is_one():
    explicit, implicit = ValueError("a"), ValueError("b")
    explicit.__cause__, implicit.__context__ = inner(401), inner(401)
    assert report_of(explicit, "model").kind == "provider_credentials_rejected"
    assert report_of(implicit, "model").kind == "model:unhandled_error"


def test_causes_in_a_circle_end():
    one, other = ValueError("a"), ValueError("b")
    one.__cause__, other.__cause__ = other, one
    assert report_of(one, "model").kind == "model:unhandled_error"


@pytest.mark.parametrize("headers", [None, {}, {FAILURE_REPORT_HEADER: "rubbish"}])
def test_an_inner_error_without_a_report_is_told_by_its_status(headers):
    info = RequestInfo(URL("http://h/"), "POST", CIMultiDictProxy(CIMultiDict()), URL("http://h/"))
    error = ClientResponseError(info, (), status=500, headers=headers and CIMultiDict(headers))
    (_, event), *more = report_of(error, "agent").chain()
    assert (event.boundary, event.kind, event.http_status, more) == ("agent", "agent_request_failed", 500, [])


def test_a_cancelled_request_is_no_failure():
    assert report_of(asyncio.CancelledError(), "agent") is None


async def test_an_error_reply_carries_the_report_and_no_text_of_the_error():
    app = FastAPI()

    @app.post("/v1/responses")
    async def responses():
        raise inner(401, b"bad key sk-secret")

    install_error_replies(app, "M___m")
    request = EmbeddedRequest("POST", "http://m:1", "/v1/responses")
    reply = await call_embedded(app, request_scope(request, "m", 1, {}), request, set())
    assert reply.status == 500
    assert reply_failure_kind(reply.headers) == "provider_credentials_rejected"
    assert "secret" not in str(report_in_headers(reply.headers))

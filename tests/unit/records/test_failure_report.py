"""What a failure report may say, what is saved of it, and what it never decides."""

import base64
import json

import msgspec
import pytest

from rollbook.outcomes.classify import cause_of, ending_of_reply
from rollbook.outcomes.retry import may_retry
from rollbook.outcomes.verdict import as_evidence
from rollbook.records.codec import RunStamp, encode, saved_row
from rollbook.records.disposition import DEFAULT_RULES, disposition_of
from rollbook.records.exchange import Reply
from rollbook.records.failure_report import (
    HEADER_BYTES,
    FailureEvent,
    FailureReport,
    header_of,
    reply_failure_kind,
    report_fields,
    report_in_headers,
    report_in_row,
)
from rollbook.records.identity import RolloutKey
from rollbook.records.outcome import Failed, Scored
from rollbook.records.reading import read_row
from rollbook.records.rejudgment import rejudge_predecessor_id
from rollbook.records.task import Rollout

FLAT = Rollout(RolloutKey(0, 1), b'{"x":1}', "env")
TASK = {"taskset": "ts", "task_id": "t1"}
EPISODE = Rollout(RolloutKey(0, 1), encode({"task_id": TASK, "task_input": {}}), "env", is_episode=True)
ASKED = {"episode_id": {"rollout_id": "0-1", "attempt": 0}, "task_id": TASK}
STAMPS = {"_ng_task_index": 0, "_ng_rollout_index": 1}
RUN = RunStamp("run", 3)

MODEL = {"boundary": "model", "kind": "provider_credentials_rejected", "http_status": 401}
AGENT = {"boundary": "agent", "kind": "agent_run_error", "stage": "agent", "http_status": 500, "cause_id": "m"}
REPORT = {"failure_id": "a", "events": {"a": AGENT, "m": MODEL}}


def packed(report):
    text = report if isinstance(report, bytes) else json.dumps(report).encode()
    return base64.b64encode(text).decode()


def headers(report):
    return {"x-ng-failure-report": report if isinstance(report, str) else packed(report)}


def ended(report=REPORT, body=b'"bad key"', status=500, rollout=FLAT):
    return ending_of_reply(Reply(status, body, headers(report)), rollout)


def test_a_report_is_read_from_the_header_that_it_was_written_to():
    report = report_in_headers(headers(REPORT))
    assert report.events["m"] == FailureEvent("model", "provider_credentials_rejected", http_status=401)
    assert report_in_headers({"x-ng-failure-report": header_of(report)}) == report


@pytest.mark.parametrize(
    "event",
    [
        {},
        {"boundary": "model"},
        {"boundary": "moon", "kind": "k"},
        {"boundary": "model", "kind": ""},
        {"boundary": "model", "kind": "two words"},
        {"boundary": "model", "kind": "line\n"},
        {"boundary": "model", "kind": "k" * 201},
        {"boundary": "model", "kind": 5},
        {"boundary": "model", "kind": ["k"]},
        {"boundary": "model", "kind": "k", "stage": "elsewhere"},
        {"boundary": "model", "kind": "k", "http_status": "500"},
        {"boundary": "model", "kind": "k", "http_status": True},
        {"boundary": "model", "kind": "k", "http_status": 42},
        {"boundary": "model", "kind": "k", "http_status": 500.5},
        {"boundary": "model", "kind": "k", "cause_id": "x"},
        {"boundary": "model", "kind": "k", "cause_id": "a"},
        {"boundary": "model", "kind": "k", "cause_id": 1},
        "model",
        None,
        [1],
    ],
)
def test_a_report_with_an_event_that_breaks_a_rule_is_none(event):
    report = {"failure_id": "a", "events": {"a": event}}
    assert report_in_headers(headers(report)) is None
    assert report_in_row(report_row(report)) is None


def report_row(report):
    return {"_ng_failure_events": report["events"], "_ng_failure_id": report["failure_id"]}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no base64!",
        "é",
        packed(b""),
        packed(b"null"),
        packed(b"[]"),
        packed(b"{"),
        packed(b"{}"),
        packed(b"\xff"),
        packed({"failure_id": "gone", "events": {}}),
        packed({"failure_id": 5, "events": {}}),
        packed({"failure_id": "a", "events": []}),
        packed({"failure_id": "a b", "events": {"a b": MODEL}}),
        packed({"events": {"a": MODEL}, "events_omitted": -1}),
        packed({"events": {"a": MODEL}, "events_omitted": "many"}),
        packed({"events": {"a": MODEL}, "events_omitted": 10**30}),
        packed(b'{"x":' * 900 + b"1" + b"}" * 900),
        packed(b"[" * 6000),
        "A" * (HEADER_BYTES + 4),
        packed({"events": {f"e{n}": MODEL | {"cause_id": f"e{(n + 1) % 50}"} for n in range(50)}}),
    ],
)
def test_a_header_that_is_no_report_changes_nothing_and_raises_nothing(text):
    assert report_in_headers(headers(text)) is None
    assert reply_failure_kind(headers(text)) is None
    assert ended(text) == ending_of_reply(Reply(500, b'"bad key"'), FLAT)


@pytest.mark.parametrize("value", [None, 5, b"e30=", ["e30="]])
def test_a_header_of_another_type_is_no_report(value):
    assert report_in_headers({"x-ng-failure-report": value}) is None


def test_what_a_report_may_not_say_is_left_out_of_what_is_saved():
    told = {"failure_id": "m", "events": {"m": MODEL | {"message": "Bearer sk-secret"}}, "also": "sk-secret"}
    assert b"secret" not in encode(saved_row(ended(told), STAMPS, RUN)[1])


@pytest.mark.parametrize(
    ("report", "kind"),
    [
        (REPORT, "provider_credentials_rejected"),
        ({"failure_id": "m", "events": {"m": MODEL}}, "provider_credentials_rejected"),
        ({"failure_id": "a", "events": {"a": AGENT | {"kind": "env:own"}, "m": MODEL}}, "env:own"),
        ({"failure_id": "a", "events": {"a": AGENT, "m": MODEL | {"kind": "agent_route_failed"}}}, None),
        ({"failure_id": "a", "events": {"a": AGENT}, "events_omitted": 1}, None),
        ({"failure_id": "a", "events": {}, "events_omitted": 2}, None),
        ({"events": {"m": MODEL}}, None),
    ],
)
def test_the_kind_is_that_of_the_outermost_failure_that_does_not_only_route(report, kind):
    assert reply_failure_kind(headers(report)) == kind


def test_a_failed_run_is_caused_by_what_the_report_tells_and_named_after_it():
    row = saved_row(ended(), STAMPS, RUN)[1]
    assert row["failure_kind"] == row["rollout_failure"]["failure"]["failure_kind"] == "provider_credentials_rejected"
    assert (row["_ng_failure_class"], row["_ng_failure_http_status"]) == ("agent_run_error", 500)
    own = row["_ng_failure_events"][row["_ng_failure_id"]]
    assert own == {
        "boundary": "collection",
        "kind": "collection_dispatch_failed",
        "http_status": 500,
        "cause_id": "a",
    }
    assert {key: row["_ng_failure_events"][key] for key in "am"} == {"a": AGENT, "m": MODEL}
    assert "_ng_failure_events_omitted" not in row
    assert report_in_row(row).kind == "provider_credentials_rejected"


def test_a_failed_run_whose_report_only_routes_keeps_its_own_kind():
    routing = {"failure_id": "m", "events": {"m": MODEL | {"kind": "agent_run_error"}}}
    assert ended(routing).outcome.kind == "agent_run_error"


def test_a_report_decides_neither_class_nor_delivery_nor_another_attempt_nor_a_score():
    plain, told = ending_of_reply(Reply(503, b"x"), FLAT), ended(body=b"x", status=503)
    assert told.outcome == msgspec.structs.replace(plain.outcome, kind="provider_credentials_rejected")
    assert may_retry(told) is may_retry(plain) is True
    rows = [saved_row(ending, STAMPS, RUN) for ending in (plain, told)]
    one, other = (disposition_of(read_row(encode(row), file), 1, DEFAULT_RULES) for file, row in rows)
    assert one is other


def test_a_result_keeps_its_reward_and_carries_the_report_of_what_was_got_over():
    ending = ended({"events": {"m": MODEL}, "events_omitted": 3}, b'{"reward":1.0}', 200)
    assert ending.outcome == Scored(1.0)
    row = saved_row(ending, STAMPS, RUN)[1]
    assert (row["reward"], row["_ng_failure_events"], row["_ng_failure_events_omitted"]) == (1.0, {"m": MODEL}, 3)
    assert not {"_ng_failure_id", "failure_kind"} & row.keys()
    assert ending.kept is None


def test_a_reported_failure_keeps_the_kind_that_it_has_and_takes_the_reports_when_it_has_none():
    named = ended(body=b'{"_ng_failure_class":"own","failure_kind":"env:own"}', status=200)
    unnamed = ended(body=b'{"_ng_failure_class":"own"}', status=200)
    assert (named.outcome.kind, unnamed.outcome.kind) == ("env:own", "provider_credentials_rejected")
    assert saved_row(unnamed, STAMPS, RUN)[1]["failure_kind"] == "provider_credentials_rejected"


def test_a_held_answer_is_found_by_the_id_that_it_has_without_a_report():
    body = encode({"_ng_failure_class": "judge_failed", "response": {"output": [1]}})
    events = {"a": AGENT, "m": MODEL, "b": MODEL | {"cause_id": "a"}}
    plain = saved_row(ending_of_reply(Reply(200, body), FLAT), STAMPS, RUN)[1]
    told = saved_row(ended({"failure_id": "a", "events": events}, body, 200), STAMPS, RUN)[1]
    assert rejudge_predecessor_id(told) == rejudge_predecessor_id(plain) == "run-0-1"
    assert told["_ng_failure_events"]["run-0-1"] == AGENT
    assert told["_ng_failure_events"]["b"]["cause_id"] == "run-0-1"
    assert "a" not in told["_ng_failure_events"]


def test_a_held_answer_has_its_id_where_a_report_selects_no_failure():
    body = encode({"_ng_failure_class": "judge_failed", "response": {"output": [1]}})
    assert saved_row(ended({"events": {"m": MODEL}}, body, 200), STAMPS, RUN)[1]["_ng_failure_id"] == "run-0-1"


def test_evidence_of_a_failed_run_carries_the_report():
    row = saved_row(as_evidence(ended()), STAMPS, RUN)[1]
    assert {"a", "m"} < row["_ng_failure_events"].keys()
    assert row["failure_kind"] == "provider_credentials_rejected"


def test_an_episode_may_carry_its_report_beside_its_outcome():
    failure = {"failure_reason": "late", "terminal": False}
    reply = encode(ASKED | {"failure": failure, "failure_report": REPORT})
    ending = ending_of_reply(Reply(200, reply), EPISODE)
    assert ending.outcome.kind == "provider_credentials_rejected"
    row = saved_row(ending, STAMPS, RUN)[1]
    assert row["_ng_failure_events"][row["_ng_failure_id"]] == AGENT
    odd = encode(ASKED | {"failure": failure, "failure_report": {"failure_id": "gone", "events": {}}})
    assert ending_of_reply(Reply(200, odd), EPISODE).report is None


def test_a_flat_reply_may_carry_its_report_under_the_keys_of_a_record():
    body = encode({"_ng_failure_class": "own"} | report_row(REPORT))
    ending = ending_of_reply(Reply(200, body), FLAT)
    assert ending.report.kind == "provider_credentials_rejected"
    cyclic = {"a": MODEL | {"cause_id": "b"}, "b": MODEL | {"cause_id": "a"}}
    bad = encode({"reward": 1.0, "_ng_failure_events": cyclic, "_ng_failure_id": "a"})
    assert saved_row(ending_of_reply(Reply(200, bad), FLAT), STAMPS)[1] == {"reward": 1.0} | STAMPS


def test_a_report_that_claims_the_ids_of_the_collection_leads_to_no_cycle():
    report = report_in_headers(headers({"failure_id": "a", "events": {"a": MODEL}}))
    own = report.caused("collection", "collection_dispatch_failed", http_status=500).failure_id
    hostile = {"failure_id": "a", "events": {"a": MODEL | {"cause_id": own}}, "events_omitted": 1}
    renamed = {"failure_id": "a", "events": {"a": MODEL | {"cause_id": "run-0-1"}}, "events_omitted": 1}
    for claimed in (hostile, renamed):
        row = saved_row(ended(claimed), STAMPS, RUN)[1]
        assert report_in_row(row) is not None


def chained(length, width=0):
    events = {
        f"e{n}": FailureEvent("agent", f"env:kind{n}", cause_id=f"e{n + 1}" if n + 1 < length else None)
        for n in range(length)
    }
    return FailureReport("e0", events | {f"w{n}": FailureEvent("agent", "env:wide") for n in range(width)})


def test_over_the_limit_a_header_keeps_the_selected_chain_and_counts_the_rest():
    sent = report_in_headers({"x-ng-failure-report": header_of(chained(5, width=500))})
    assert list(sent.events) == [f"e{n}" for n in range(5)]
    assert (sent.events_omitted, sent.kind) == (500, "env:kind0")


def test_of_a_chain_beyond_the_limit_the_outermost_failures_are_kept():
    text = header_of(chained(400))
    sent = report_in_headers({"x-ng-failure-report": text})
    assert len(text) <= HEADER_BYTES
    assert len(sent.events) + sent.events_omitted == 400
    assert sent.failure_id == "e0"
    assert sent.kind is None


def test_the_cause_of_a_failed_run_names_the_innermost_failure_and_what_was_said():
    assert cause_of(ended()) == "model (provider_credentials_rejected, 401): bad key"
    assert cause_of(ended(body=b"")) == "model (provider_credentials_rejected, 401)"
    assert isinstance(ended().outcome, Failed)


def test_a_report_without_events_has_no_cause_to_show():
    assert "collection" in cause_of(ended({"failure_id": "a", "events": {}, "events_omitted": 1}))


def test_the_keys_of_a_record_read_back_as_the_report():
    report = report_in_headers(headers(REPORT | {"events_omitted": 2}))
    assert report_in_row(report_fields(report)) == report
    assert report_in_row(report_fields(report) | {"_ng_failure_events_omitted": True}).events_omitted == 1

"""The ways in which an attempt ends, as the ledger's machine plays them."""

from rollbook.outcomes.classify import ending_of_reply, ending_of_send_failure, plain_result
from rollbook.outcomes.verdict import as_evidence
from rollbook.records.ending import Ending
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.records.outcome import NeverStarted
from rollbook.records.reply_codec import ending_of_payload

ANSWER = {"response": {"output": [{"type": "message"}]}}

AS_IT_CAME = [
    plain_result(body.encode())
    for body in ('{"reward":0.5,"note":"é\\u00e9\\n"}', '{"mask_sample":true,"reward":1}', '{"note":{"reward":[2]}}')
]
RESULTS = [
    *(
        ending_of_payload(payload)
        for payload in (
            {"reward": 1.0, **ANSWER},
            {"reward": 0, "mask_sample": True},
            {"mask_sample": True},
            {"note": "é"},
        )
    ),
    *AS_IT_CAME,
]
FAILURES = [
    *map(
        ending_of_payload,
        (
            {"_ng_failure_class": "transient", "_ng_failure_message": "why", "reward": 0.0, "note": [1]},
            {"_ng_failure_class": "transient", "_ng_failure_http_status": 503},
            {"_ng_failure_class": "reference_missing", "_ng_failure_terminal": True},
            {"_ng_failure_class": "canonical", "_ng_failure_legacy_class": "skipped"},
            {"_ng_failure_class": "timeout_exceeded", "deliverables_dir": "kept"},
            {"_ng_failure_class": "judge_failed", "reward": 0.0, "mask_sample": True, **ANSWER},
            {"_ng_failure_class": "judge_failed"},
            {"reward": float("nan")},
        ),
    ),
    *(ending_of_reply(Reply(status, b"said"), None) for status in (500, 502, 503)),
    *(
        ending_of_send_failure(SendFailed("gone", delivery=delivery, exception_type="TimeoutError"))
        for delivery in (Delivery.NOT_SENT, Delivery.POSSIBLY_DELIVERED)
    ),
]
INTERRUPTIONS = [
    ending_of_payload({"_ng_no_persist": True} | payload)
    for payload in (
        {},
        {"_ng_failure_class": "kill_shaped", "_ng_failure_message": "oom", "reward": 1.0},
        {"_ng_failure_class": "own", "_ng_failure_terminal": True},
        {"_ng_failure_delivery": "not_sent"},
        {"_ng_failure_stage": "admission"},
    )
]
EVIDENCE = as_evidence(FAILURES[0])
DRAINED = Ending(NeverStarted("not dispatched: budget"))

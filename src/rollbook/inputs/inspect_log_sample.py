"""One sample of an inspect_ai log → a task's row, and how its try ended.

Rules:
* A score counts whatever ended the sample; without one, an error is a failure and so is a limit, and neither is a 0.
* Without score, error or limit the sample was not scored, and so is its rollout.
* A sample that was cancelled with others is a failure of the class `cancelled`; it says nothing about its task.
* Nobody runs it again here: a failure is final.

Source: inspect_ai 0.3, log/_log.py (EvalSample); collection.md §1.3, §4.5; case RC-79.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from rollbook.inputs.inspect_log_messages import ATTACHED, input_items, output_items, text
from rollbook.inputs.inspect_log_scores import Scorer, fields
from rollbook.inputs.logged import LoggedRollout
from rollbook.records import keys
from rollbook.records.ending import Ending
from rollbook.records.failure_kinds import (
    AGENT_RUN_ERROR_FAILURE_CLASS,
    CANCELLED_FAILURE_CLASS,
    FailureStage,
)
from rollbook.records.json_values import JsonObject, mapping_or_empty
from rollbook.records.outcome import Failed, Scored, Unscored

MOST_TEXT: Final = 256 << 20
"""How many characters a sample may have once what was attached is in its place."""

_MOST_MESSAGE: Final = 2000
_TIME_LIMITS: Final = frozenset({"time", "working"})
_LIMITS: Final = _TIME_LIMITS | {"context", "message", "token", "turn", "cost", "operator", "custom"}
_TIMED_OUT: Final = "timeout_exceeded"
_AGENT_TIMEOUT: Final = "agent_timeout"
_EXCEPTION: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*(?=\()")
_CANCELLED: Final = "CancelledError"
_INCOMPLETE: Final = {
    "max_tokens": "max_output_tokens",
    "content_filter": "content_filter",
    "model_length": "max_output_tokens",
}


def rollout_of(sample: Mapping[str, object], task: str, scorer: Scorer) -> LoggedRollout:
    """Return what `sample`, of the evaluation of `task`, says.

    Raises:
        LogError: several scorers judged it, and none was asked for.
        ValueError: it is no sample: no epoch, or texts beyond all measure.

    """
    epoch = sample.get("epoch", 1)
    if type(epoch) is not int or not 0 < epoch <= MOST_EPOCHS:
        raise ValueError(f"its epoch is {epoch!r}, and no number from 1")
    resolve = _Attachments(mapping_or_empty(sample.get("attachments")))
    row = row_of(sample, task, input_items(sample.get("input"), resolve))
    content: JsonObject = {
        "id": row[PROBLEM_ID],
        "input": row[keys.RESPONSES_CREATE_PARAMS_KEY],
        "target": row.get(ANSWER),
    }
    return LoggedRollout(content, row, epoch - 1, _ending(sample, scorer, resolve))


MOST_EPOCHS: Final = 1_000_000
PROBLEM_ID: Final = "problem_id"
ANSWER: Final = "expected_answer"


def row_of(sample: Mapping[str, object], task: str, items: list[JsonObject]) -> JsonObject:
    """Return the row of a sample's task; of one that nothing was logged of, only its id is known."""
    row: JsonObject = {
        keys.RESPONSES_CREATE_PARAMS_KEY: {"input": items},
        PROBLEM_ID: str(sample.get("id")),
        keys.AGENT_REF_KEY: {"name": task},
    }
    told = {ANSWER: sample.get("target"), "choices": sample.get("choices")}
    return row | {name: value for name, value in told.items() if value is not None}


class _Attachments:
    """Long texts that a log keeps once and points at."""

    def __init__(self, attached: Mapping[str, object]) -> None:
        self._attached = attached
        self._left = MOST_TEXT

    def __call__(self, said: str) -> str:
        if "attachment://" not in said:
            return said
        return ATTACHED.sub(self._of, said)

    def _of(self, match: re.Match[str]) -> str:
        attached = self._attached.get(match[1])
        if not isinstance(attached, str):
            return match[0]
        self._left -= len(attached)
        if self._left < 0:
            raise ValueError(f"with what is attached it has more than {MOST_TEXT} characters")
        return attached


def _ending(sample: Mapping[str, object], scorer: Scorer, resolve: _Attachments) -> Ending:
    scores = mapping_or_empty(sample.get("scores"))
    reward = scorer.reward(scores)
    failed = _failed(sample)
    if reward is None and failed is not None:
        return Ending(failed, _times(sample))
    payload = dict(_payload(sample, scores, scorer, resolve))
    if failed is not None:
        payload |= {keys.STATUS_FAILURE_KIND_KEY: failed.kind, keys.FAILURE_REASON_KEY: failed.message}
    if reward is None:
        return Ending(Unscored(), payload)
    return Ending(Scored(reward), {keys.REWARD_KEY: reward} | payload)


def _failed(sample: Mapping[str, object]) -> Failed | None:
    """Return the failure that the sample's error or limit is, if it has one."""
    error, limit = sample.get("error"), sample.get("limit")
    if error:
        message = text(mapping_or_empty(error).get("message")) or str(error)
        raised = _EXCEPTION.match(message)
        cancelled = message.startswith(_CANCELLED)
        failure_class = CANCELLED_FAILURE_CLASS if cancelled else AGENT_RUN_ERROR_FAILURE_CLASS
        return _failure(failure_class, failure_class, message, raised[0] if raised else None)
    if limit:
        return _limited(mapping_or_empty(limit))
    return None


def _limited(limit: Mapping[str, object]) -> Failed:
    kind = text(limit.get("type"))
    said = text(limit.get("reason")) or f"the {kind or 'sample'} limit of {limit.get('limit')} was reached"
    if kind in _TIME_LIMITS:
        return _failure(_TIMED_OUT, _AGENT_TIMEOUT, said)
    named = kind if kind in _LIMITS else "sample"
    return _failure(AGENT_RUN_ERROR_FAILURE_CLASS, f"inspect_ai:{named}_limit", said)


def _failure(failure_class: str, kind: str, message: str, raised: str | None = None) -> Failed:
    return Failed(
        failure_class, message[:_MOST_MESSAGE], kind, FailureStage.AGENT, terminal=True, exception_type=raised
    )


def _payload(
    sample: Mapping[str, object], scores: Mapping[str, object], scorer: Scorer, resolve: _Attachments
) -> Iterator[tuple[str, object]]:
    yield keys.RESPONSE_KEY, _response(sample, resolve)
    yield from fields(scores).items()
    answer = scorer.answer(scores)
    if answer is not None:
        yield "extracted_answer", answer
    if scores:
        yield "inspect_scores", scores
    yield from _times(sample).items()
    kept = {"metadata": sample.get("metadata"), "inspect_limit": sample.get("limit")}
    yield from ((name, value) for name, value in kept.items() if value)


def _times(sample: Mapping[str, object]) -> JsonObject:
    """Return how long the sample took, in seconds, and when it began and ended."""
    seconds = {keys.NG_ELAPSED_KEY: sample.get("total_time"), "working_seconds": sample.get("working_time")}
    moments = {name: sample.get(name) for name in ("started_at", "completed_at")}
    told: JsonObject = {name: value for name, value in seconds.items() if type(value) in (int, float)}
    return told | {name: value for name, value in moments.items() if isinstance(value, str)}


def _response(sample: Mapping[str, object], resolve: _Attachments) -> JsonObject:
    output = mapping_or_empty(sample.get("output"))
    choices = output.get("choices")
    first = mapping_or_empty(choices[0]) if isinstance(choices, list) and choices else {}
    reason = _INCOMPLETE.get(text(first.get("stop_reason")))
    response: JsonObject = {
        "object": "response",
        "model": text(output.get("model")),
        "output": output_items(sample.get("messages"), resolve),
        "status": "incomplete" if reason else "completed",
    }
    if reason:
        response["incomplete_details"] = {"reason": reason}
    usage = _usage(sample, output)
    return response | ({"usage": usage} if usage else {})


def _usage(sample: Mapping[str, object], output: Mapping[str, object]) -> JsonObject:
    """Return the tokens of all models together; those read from or written to a cache are input as well."""
    by_model = mapping_or_empty(sample.get("model_usage"))
    used = list(map(mapping_or_empty, by_model.values() or [output.get("usage")]))
    names = ("input_tokens", "output_tokens", "total_tokens", "reasoning_tokens")
    count = {name: _sum(used, name) for name in names}
    read, written = _sum(used, "input_tokens_cache_read"), _sum(used, "input_tokens_cache_write")
    if not any(count.values()):
        return {}
    return {
        "input_tokens": count["input_tokens"] + read + written,
        "output_tokens": count["output_tokens"],
        "total_tokens": count["total_tokens"],
        "input_tokens_details": {"cached_tokens": read},
        "output_tokens_details": {"reasoning_tokens": count["reasoning_tokens"]},
    }


def _sum(used: list[Mapping[str, object]], name: str) -> int:
    return sum(value for one in used if type(value := one.get(name)) is int and value > 0)

"""The checks of one record: each gives what it found, or None when there was nothing to go by.

Rules:
* A check gives no verdict, and looks at nothing but what was observed.
* An empty list says that the evidence was there and that nothing is wrong.

Source: collection.md §7.2.
"""

from rollbook.health.calls import Call
from rollbook.health.content import has_content, has_text, has_tool_call
from rollbook.health.finding import Found
from rollbook.health.observed import SCOPE_INCOMPLETE, Observed
from rollbook.health.trajectory import Turn

Result = list[Found] | None


def missing_agent_turns(seen: Observed) -> Result:
    """No turn holds a message, a call of a tool or a reference to a model call."""
    if not seen.sees_turns or seen.trajectory is None:
        return None
    turns = seen.trajectory.turns
    if any(turn.model_calls or not _is_hollow(turn) for turn in turns):
        return []
    return [Found(detail={"turns": len(turns)})]


def _is_hollow(turn: Turn) -> bool:
    says = has_content(turn.answer) or has_content(turn.reasoning_content)
    return not says and not turn.tool_calls and not has_tool_call(turn.answer)


def ended_on_failed_model_call(seen: Observed) -> Result:
    """For some model, the last call in time failed."""
    if not seen.sees_calls or not seen.calls:
        return None
    found, undecided = [], False
    by_model: dict[tuple[str | None, str | None], list[Call]] = {}
    for call in seen.calls:
        by_model.setdefault(call.model, []).append(call)
    for (kind, name), calls in by_model.items():
        ended_so = _last_failed(calls)
        undecided |= ended_so is None
        if ended_so:
            found.append(Found({"model_type": kind, "model": name}, {"calls": len(calls)}))
    return None if undecided and not found else found


def _last_failed(calls: list[Call]) -> bool | None:
    """Whether the last of a model's calls failed; None when that cannot be told."""
    failed = sum(call.failed for call in calls)
    if failed in {0, len(calls)}:
        return failed > 0
    if any(call.time is None for call in calls):
        return None
    return max(calls, key=lambda call: call.time or 0.0).failed


def turn_hollow(seen: Observed) -> Result:
    """A turn has neither a message nor a call of a tool."""
    if not seen.sees_turns or seen.trajectory is None:
        return None
    return [
        Found({"invocation_id": turn.invocation_id, "turn_no": turn.turn_no})
        for turn in seen.trajectory.turns
        if _is_hollow(turn) and not any(seen.calls[place].has_tool_calls for place in _calls_of(seen, turn))
    ]


def _calls_of(seen: Observed, turn: Turn) -> list[int]:
    return [place for reference in turn.model_calls for place in seen.meant[id(reference)]]


def _owned(seen: Observed) -> list[tuple[int, Call]]:
    return [(place, seen.calls[place]) for place in seen.owned]


def zero_completion_tokens(seen: Observed) -> Result:
    """An owned call brought no token."""
    if not seen.sees_calls or not seen.owned:
        return None
    return [Found(call.locator(place)) for place, call in _owned(seen) if call.completion == 0]


def missing_token_counts(seen: Observed) -> Result:
    """An owned call does not say how many tokens it took and brought."""
    if not seen.sees_calls or not seen.owned:
        return None
    found = []
    for place, call in _owned(seen):
        counts = {"prompt_tokens": call.prompt, "completion_tokens": call.completion}
        missing = [name for name, value in counts.items() if value is None]
        if missing:
            found.append(Found(call.locator(place), {"missing": missing}))
    return found


def capture_mismatch(seen: Observed) -> Result:
    """A reference means no call, or several, or a gap says so."""
    if not seen.sees_calls or not (seen.bound or seen.has_reference_gap):
        return None
    found = [
        Found(bound.where, {"model_call_id": bound.reference.model_call_id, "calls": len(bound.places)})
        for bound in seen.bound
        if len(bound.places) != 1
    ]
    return found + [Found(detail={"gap": code}) for code in seen.reference_gaps]


def model_call_failed(seen: Observed) -> Result:
    """An owned call failed; `terminal` when it is known to be the last."""
    if not seen.sees_calls or not seen.owned:
        return None
    last = _last_place(seen) if seen.binding_is_complete else None
    return [
        Found(call.locator(place), {**_failure(call), "terminal": place == last})
        for place, call in _owned(seen)
        if call.failed
    ]


def _last_place(seen: Observed) -> int | None:
    """Return the place of the owned call that came last; where times are missing, the last one recorded."""
    if any(call.time is None for _, call in _owned(seen)):
        return max(seen.owned, default=None)
    return max(seen.owned, key=lambda place: (seen.calls[place].time or 0.0, place), default=None)


def _failure(call: Call) -> dict[str, object]:
    facts = {"status_code": call.status_code, "error_category": call.error, "status": call.state}
    return {name: value for name, value in facts.items() if value is not None}


def token_count_mismatch(seen: Observed) -> Result:
    """The response says other totals than the calls of its turns add up to."""
    if SCOPE_INCOMPLETE in seen.gaps or not seen.binding_is_complete or not seen.usage.is_known:
        return None
    usage, calls = seen.usage, [seen.calls[place] for place in seen.of_turns]
    prompts, completions = [call.prompt for call in calls], [call.completion for call in calls]
    if None in prompts or None in completions:
        return None
    sums = {"prompt": sum(filter(None, prompts)), "completion": sum(filter(None, completions))}
    told = {"prompt": usage.prompt, "completion": usage.completion}
    differing = {name: {"response": told[name], "calls": sums[name]} for name in sums if told[name] is not None}
    wrong = {name: both for name, both in differing.items() if both["response"] != both["calls"]}
    return [Found(detail=dict(wrong))] if wrong else []


def runaway_generation(seen: Observed) -> Result:
    """An owned call went on to the limit of tokens without a word of text."""
    if not seen.owned:
        return None
    cut_short = [(place, call) for place, call in _owned(seen) if call.was_cut_short]
    found = [
        Found(call.locator(place), {"finish_reason": call.finish, "completion_tokens": call.completion})
        for place, call in cut_short
        if call.body is not None and not has_text(call.response())
    ]
    is_blind = any(call.body is None for _, call in cut_short)
    return None if is_blind and not found else found

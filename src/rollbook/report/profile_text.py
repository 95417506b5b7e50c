"""A profile, for people and for programs.

Rules:
* What a condition dropped, and what it could not decide, stands beside what it kept.
* A mean over tasks stands beside its standard error; of a single task there is none.
* pass@k names how many tasks it is the mean of, and how many have too few rollouts for it.

Source: collection.md §9.4; case RC-74.
"""

from collections.abc import Iterator
from typing import Final

from rollbook.records.json_values import JsonObject
from rollbook.report.shapes import VERSION, files_json
from rollbook.report.words import BEYOND_REWARDS
from rollbook.scoring.profile_totals import Kept, LabelTotals, Profile

_LISTED: Final = 3


def profile_text(profile: Profile) -> str:
    """Return what a profile came to, a few lines a label."""
    return "\n".join(_lines(profile))


def _lines(profile: Profile) -> Iterator[str]:
    more = f" and {len(profile.runs) - _LISTED} more" if len(profile.runs) > _LISTED else ""
    yield f"Profile of {', '.join(profile.runs[:_LISTED])}{more}"
    if not profile.has_plan:
        yield "There are no materialized inputs: what records name is taken for all that was planned."
    for totals in profile.labels:
        yield from _label_lines(totals)
    if profile.kept is not None:
        yield from _kept_lines(profile.kept)
    yield from (f"{name:8} {path}" for name, path in profile.files.items())


def _label_lines(totals: LabelTotals) -> Iterator[str]:
    share = 100 * totals.found / totals.planned if totals.planned else 0.0
    yield (
        f"{totals.label or 'all rollouts'}: {totals.tasks} tasks, {totals.complete} complete, "
        f"{totals.partial} partial, {totals.missing} missing; "
        f"{totals.found} of {totals.planned} rollouts ({share:.1f} %)"
        + (f", {totals.masked} masked and left out" if totals.masked else "")
    )
    mean = "no reward" if totals.mean_reward is None else f"mean reward {totals.mean_reward:.4f}{_error(totals)}"
    zeros = f", {totals.zeros} failed and count as 0" if totals.zeros else ""
    yield f"  {mean}, {totals.scored} scored{zeros}"
    if totals.headline().interval_beyond_rewards:
        yield f"  {BEYOND_REWARDS}"
    errors = totals.pass_errors()
    for k, (rate, tasks) in totals.pass_rates().items():
        few, rollouts = totals.tasks - tasks, "1 rollout" if k == 1 else f"{k} rollouts"
        said = f" ({few} of {totals.tasks} tasks have fewer than {rollouts} and are not in it)" if few else ""
        error = f" ± {errors[k]:.4f}" if k in errors else ""
        yield f"  pass@{k} {rate:.4f}{error} over {tasks} tasks{said}"


def _error(totals: LabelTotals) -> str:
    """Return how sure a mean is: nothing of fewer than two tasks."""
    headline = totals.headline()
    error, interval = headline.observed.standard_error, headline.interval
    if error is None:
        return ""
    between = "" if interval is None else f", 95 % interval [{interval.low:.4f}, {interval.high:.4f}]"
    return f" ± {error:.4f} (clustered by task{between})"


def _kept_lines(kept: Kept) -> Iterator[str]:
    yield f"Kept {kept.kept} of {kept.tasks} tasks for which {kept.text}"
    yield f"  {kept.dropped} dropped because it does not hold"
    for reason, count in sorted(kept.undefined.items()):
        yield f"  {count} not kept because it is undefined: {reason}"


def profile_json(profile: Profile) -> JsonObject:
    """Return the same as one document."""
    return VERSION | {
        "runs": list(profile.runs),
        "has_materialized_inputs": profile.has_plan,
        "agents": list(map(_agent_json, profile.labels)),
        "keep": None if profile.kept is None else _kept_json(profile.kept),
        "files": files_json(profile.files),
        "damage": list(profile.damage),
        "warnings": list(profile.warnings),
    }


def _agent_json(totals: LabelTotals) -> JsonObject:
    rates, errors = totals.pass_rates().items(), totals.pass_errors()
    headline = totals.headline()
    return {
        "agent": totals.label,
        "tasks": totals.tasks,
        "complete_tasks": totals.complete,
        "partial_tasks": totals.partial,
        "missing_tasks": totals.missing,
        "expected": totals.planned + totals.masked,
        "with_result": totals.found - totals.zeros + totals.masked,
        "masked": totals.masked,
        "scored": totals.scored,
        "imputed": totals.zeros,
        "mean_reward": totals.mean_reward,
        "standard_error": headline.observed.standard_error,
        "interval_95": None if headline.interval is None else [headline.interval.low, headline.interval.high],
        "interval_beyond_rewards": headline.interval_beyond_rewards,
        "pass_at_k": [
            {
                "k": k,
                "value": rate,
                "standard_error": errors.get(k),
                "tasks": tasks,
                "short_tasks": totals.tasks - tasks,
            }
            for k, (rate, tasks) in rates
        ],
    }


def _kept_json(kept: Kept) -> JsonObject:
    return {
        "condition": kept.text,
        "tasks": kept.tasks,
        "kept": kept.kept,
        "dropped": kept.dropped,
        "undefined": dict(sorted(kept.undefined.items())),
        "export": kept.exported,
    }

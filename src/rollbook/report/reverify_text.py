"""What judging again came to, as text and as JSON.

Rules:
* The difference stands beside the means that it is of, and beside how many rollouts they speak for.
* The output's mean is a headline as that of a run is: with its error, or withheld.
* The first rewards that changed are named; how many more there are is said.

Source: collection.md §9.1.
"""

from collections.abc import Iterator

from rollbook.records.json_values import JsonObject
from rollbook.records.reverify_report import ReverifyReport
from rollbook.report.shapes import VERSION, coverage_json, files_json
from rollbook.report.words import headline_in_words, shown


def reverify_text(report: ReverifyReport) -> str:
    """Return what judging again came to."""
    return "\n".join(shown(line) for line in _lines(report))


def reverify_json(report: ReverifyReport) -> JsonObject:
    """Return the same for programs."""
    return VERSION | {
        "output": report.output,
        "run_id": report.run_id,
        "selected": report.selected,
        "left": report.left,
        "left_out": dict(report.left_out),
        "mean_reward": report.mean,
        "coverage": coverage_json(report.coverage),
        "headlines": [{"agent": agent} | headline.to_json() for agent, headline in report.headlines.items()],
        "delta": report.delta.as_json(),
        "files": files_json(report.files),
        "metrics": list(report.metrics),
        "notes": list(report.notes),
        "stopped": report.stopped,
    }


def _lines(report: ReverifyReport) -> Iterator[str]:
    delta, coverage = report.delta, report.coverage
    done = report.selected - report.left
    yield f"Judged again: {done} of {report.selected} answers"
    if delta.judged_twice and delta.old_mean is not None and delta.new_mean is not None:
        yield (
            f"  mean reward {delta.old_mean:.4f} -> {delta.new_mean:.4f} ({delta.new_mean - delta.old_mean:+.4f}) over "
            f"the {delta.judged_twice} rollouts that have both"
        )
        yield f"  {delta.up + delta.down} rewards changed: {delta.up} up, {delta.down} down"
        yield from (f"    {one.key}: {one.old:g} -> {one.new:g}" for one in delta.first)
        more = delta.up + delta.down - len(delta.first)
        yield from [f"    … and {more} more"] if more else []
    if delta.gained:
        yield f"  {delta.gained} rollouts have a reward now and had none: mean {delta.gained_sum / delta.gained:.4f}"
    for (old, new), count in sorted(delta.moved.items()):
        yield f"  {old} -> {new}: {count}"
    zeros = f", and {report.zeros} failed and count as 0" if report.zeros else ""
    yield f"The output: {coverage.scored} of {coverage.planned} planned rollouts are scored{zeros}"
    for agent, headline in report.headlines.items():
        yield from (f"  {line}" for line in headline_in_words(agent, headline))
    missing = coverage.planned - coverage.scored - coverage.masked - report.zeros
    yield from [f"  {missing} of them have no result"] if missing else []
    yield from (f"{name}: {path}" for name, path in report.files.items())

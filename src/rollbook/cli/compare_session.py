"""One comparison, from the runs that the command line names to its exit code.

Rules:
* The report is written before anything is printed; it replaces an earlier one.
* A run's own files are never written.

Source: collection.md §9.2, §10.7.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

import click
import msgspec

from rollbook.cli.compare_flags import listed
from rollbook.cli.run_outputs import run_named
from rollbook.cli.terminal import note, say, say_json
from rollbook.compare.agents import AgentChoice
from rollbook.compare.comparison import Comparison
from rollbook.compare.pairing import PairBy
from rollbook.ledger.paths import aggregate_metrics_path_for
from rollbook.ledger.whole_file import whole_file
from rollbook.records.json_values import JsonObject
from rollbook.report.compare_json import compare_json
from rollbook.report.compare_markdown import compare_markdown
from rollbook.report.compare_text import compare_text
from rollbook.verbs.compare import Run, Wanted, compare
from rollbook.verbs.compare_rows import Settings, has_rows

MARKDOWN: Final = "compare_report.md"
JSON: Final = "compare_report.json"
_METRICS: Final = "_aggregate_metrics.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the command line asked for."""

    as_json: bool
    by_metrics: bool
    baseline: str | None
    candidates: tuple[str, ...]
    agent: str | None
    baseline_agent: str | None
    candidate_agents: tuple[str, ...]
    output_dir: str | None
    report_format: str
    gate: str | None
    pair_by: str
    min_coverage: float | None
    alpha: float | None
    assume_complete: bool | None
    flips: int
    seed: int
    baseline_agg_metrics: str | None = None
    candidates_agg_metrics: tuple[str, ...] = ()
    no_rows: bool = False


def show_comparison(asked: Asked) -> int:
    """Compare, write the report, print it, and return the exit code."""
    wanted = _wanted(asked)
    comparison = compare(wanted)
    document = compare_json(comparison)
    written = _write(_folder(asked, wanted), asked.report_format, comparison, document)
    if asked.as_json:
        say_json(document)
    else:
        say(compare_text(comparison))
        say("")
    for path in written:
        note(f"Report: {path}")
    return comparison.exit_code


def _wanted(asked: Asked) -> Wanted:
    baselines = _runs([asked.baseline] if asked.baseline else [], _metrics(asked.baseline_agg_metrics))
    candidates = _runs(listed(asked.candidates), listed(asked.candidates_agg_metrics))
    if not baselines or not candidates:
        metrics = " or --baseline-agg-metrics and --candidates-agg-metrics" if asked.by_metrics else ""
        raise click.UsageError(f"name the runs with --baseline and --candidates{metrics}.")
    return Wanted(
        baseline=baselines[0],
        candidates=candidates,
        settings=Settings(
            agents=AgentChoice(asked.agent, asked.baseline_agent, listed(asked.candidate_agents)),
            pair_by=PairBy(asked.pair_by),
            seed=asked.seed,
            flips=asked.flips,
        ),
        policy=Path(asked.gate) if asked.gate else None,
        alpha=asked.alpha,
        min_coverage=asked.min_coverage,
        assume_complete=asked.assume_complete,
        by_metrics=asked.by_metrics,
        by_rows=not asked.no_rows,
    )


def _metrics(path: str | None) -> list[str]:
    return [path] if path else []


def _runs(outputs: Sequence[str], metrics: Sequence[str]) -> tuple[Run, ...]:
    """Return runs by output, by metrics, or by both, which go together in their order."""
    if outputs and metrics and len(outputs) != len(metrics):
        raise click.UsageError(f"{len(outputs)} runs and {len(metrics)} files of metrics were named; name as many.")
    return tuple(_run(output, file) for output, file in zip_longest(outputs, metrics))


def _run(word: str | None, metrics: str | None) -> Run:
    file = Path(metrics) if metrics else None
    if word is None:
        return Run(None, file)
    path = Path(word)
    if path.name.endswith(_METRICS):
        beside = path.with_name(f"{path.name.removesuffix(_METRICS)}.jsonl")
        return Run(beside if has_rows(beside) else None, file or path)
    by_metrics = file or aggregate_metrics_path_for(path)
    if not path.is_dir() and not has_rows(path) and by_metrics.exists():
        return Run(path, file)
    return Run(run_named(word), file)


def _folder(asked: Asked, wanted: Wanted) -> Path:
    first = wanted.candidates[0]
    beside = first.output or first.metrics or Path()
    return Path(asked.output_dir) if asked.output_dir else beside.parent


def _write(folder: Path, report_format: str, comparison: Comparison, document: JsonObject) -> list[Path]:
    texts = {}
    if report_format in {"md", "both"}:
        texts[folder / MARKDOWN] = compare_markdown(comparison).encode(errors="replace")
    if report_format in {"json", "both"}:
        texts[folder / JSON] = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    for path, text in texts.items():
        with whole_file(path) as file:
            file.write(text)
    return list(texts)

"""What was reported of a run that another one has replaced at its output: removed, so that it is taken for nobody's.

Rules:
* Only what is this run's alone is removed: its profile, the health summary that names its results, and a comparison
  that it is a side of. What a folder's other runs are told of stays.
* Asked once a fresh run is in force, and never before.

Source: collection.md §1.2, §7.3.
"""

from pathlib import Path
from typing import Final

import msgspec

from rollbook.ledger.paths import (
    RunPaths,
    agent_metrics_path_for,
    repeat_level_metrics_path_for,
    reward_profiling_path_for,
)
from rollbook.ledger.run import explained

COMPARED: Final = "compare_report.json"
_COMPARED_IN_WORDS: Final = "compare_report.md"


def forget_reports(paths: RunPaths) -> None:
    """Remove the reports of what was at the output before.

    Raises:
        LedgerError: the disk refuses it.

    """
    with explained(paths):
        for path in (*_profile(paths.output), *_health(paths.output), *_comparison(paths.output)):
            path.unlink(missing_ok=True)


def _profile(output: Path) -> tuple[Path, ...]:
    return reward_profiling_path_for(output), agent_metrics_path_for(output), repeat_level_metrics_path_for(output)


def _health(output: Path) -> tuple[Path, ...]:
    if not any(output.parent.glob("*quality_summary.json")):
        return ()
    from rollbook.verbs.health import report_paths, sources_of  # noqa: PLC0415  a run starts sooner without it

    reports = report_paths([output], output.parent)
    return (reports.summary, reports.verdicts) if output.name in sources_of(reports.summary) else ()


class _Compared(msgspec.Struct):
    baseline: str = ""
    candidates: list[str] = msgspec.field(default_factory=list)


def _comparison(output: Path) -> tuple[Path, ...]:
    document = output.with_name(COMPARED)
    try:
        compared = msgspec.json.decode(document.read_bytes(), type=_Compared)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return ()
    first = [output.with_name(Path(one).name) for one in compared.candidates[:1]]
    sides = {path.resolve() for path in (*first, *map(Path, (compared.baseline, *compared.candidates)))}
    return (document, output.with_name(_COMPARED_IN_WORDS)) if output.resolve() in sides else ()

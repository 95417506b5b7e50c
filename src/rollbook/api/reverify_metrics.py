"""What is written of a run whose answers were judged again: coverage, counts, metrics, or a word on why there are none.

Rules:
* Rewards are safe on disk before metrics are asked for; what keeps metrics from being computed ends no command.
* Counts that lie beside a run are brought up to date; where none lie, none are made.

Source: collection.md §1.9, §1.12, §6.3, §9.1.
"""

from collections.abc import Callable, Sequence

from rollbook.api.batch import StatusFile, aggregation_of
from rollbook.clock import Clock
from rollbook.errors import ConfigError, LedgerError
from rollbook.ledger.run import explained
from rollbook.records.disposition import Rules
from rollbook.records.json_values import JsonObject
from rollbook.records.run_status import RunState
from rollbook.scoring.coverage_report import coverage_report
from rollbook.scoring.imputation import NOTHING_COUNTED
from rollbook.servers.serving.deployment import Deployment
from rollbook.verbs.coverage_file import write_coverage
from rollbook.verbs.metrics_file import doubts_of
from rollbook.verbs.reverify_metrics import JudgedResults, judged_metrics
from rollbook.verbs.reverify_routes import VerifyRoutes
from rollbook.verbs.status import Reading


async def metrics_of(
    reading: Reading, routes: VerifyRoutes, deployment: Deployment, tell: Callable[[str], None]
) -> list[JsonObject]:
    """Return the metrics of a run whose answers were judged again; a server's fault is told."""
    paths = reading.paths
    try:
        with explained(paths, paths.aggregate_metrics):
            metrics = await judged_metrics(JudgedResults(paths, reading.history.standings, routes), deployment)
    except (LedgerError, ConfigError) as error:
        tell(f"the rewards are safe; metrics could not be computed: {error}")
        return []
    for doubt in doubts_of(metrics):
        tell(doubt)
    return metrics


def write_counts(reading: Reading, rules: Rules, clock: Clock, metrics: Sequence[JsonObject]) -> None:
    """Write what the rewards of a run cover, and bring its status file up to date.

    Raises:
        LedgerError: the disk does not take it.

    """
    paths, standings, manifest = reading.paths, reading.history.standings, reading.history.manifest
    with explained(paths, paths.coverage):
        write_coverage(paths.coverage, coverage_report(standings, NOTHING_COUNTED, rules), NOTHING_COUNTED)
    if manifest is not None and paths.batch_status.exists():
        status = StatusFile(paths, manifest, standings, rules, clock)
        status.write(RunState.FINISHED, aggregation_of(metrics))

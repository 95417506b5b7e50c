"""The metrics of a run whose answers were judged again, or a word on why there are none.

Rules:
* Rewards are safe on disk before metrics are asked for; what keeps metrics from being computed ends no command.

Source: collection.md §6.3, §9.1.
"""

from rollbook.errors import ConfigError, LedgerError
from rollbook.ledger.run import explained
from rollbook.records.json_values import JsonObject
from rollbook.servers.serving.deployment import Deployment
from rollbook.verbs.reverify_metrics import JudgedResults, judged_metrics
from rollbook.verbs.reverify_routes import VerifyRoutes
from rollbook.verbs.status import Reading


async def metrics_of(
    reading: Reading, routes: VerifyRoutes, deployment: Deployment, notes: list[str]
) -> list[JsonObject]:
    """Return the metrics of a run whose answers were judged again; a server's fault is told in `notes`."""
    paths = reading.paths
    try:
        with explained(paths, paths.aggregate_metrics):
            metrics = await judged_metrics(JudgedResults(paths, reading.history.standings, routes), deployment)
    except (LedgerError, ConfigError) as error:
        notes.append(f"the rewards are safe; metrics could not be computed: {error}")
        return []
    notes += [
        f"metrics could not be computed: {one['aggregation_error']}" for one in metrics if "aggregation_error" in one
    ]
    return metrics

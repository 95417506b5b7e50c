"""The metrics of a run whose answers were judged again, or a word on why there are none.

Rules:
* Rewards are safe on disk before metrics are asked for; what keeps metrics from being computed ends no command.

Source: collection.md §6.3, §9.1.
"""

from collections.abc import Callable

from rollbook.errors import ConfigError, LedgerError
from rollbook.ledger.run import explained
from rollbook.records.json_values import JsonObject
from rollbook.servers.serving.deployment import Deployment
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
    for one in metrics:
        if "aggregation_error" in one:
            tell(f"metrics could not be computed: {one['aggregation_error']}")
    return metrics

"""The aggregate metrics of rows from standard input, by the hooks of the server whose package is named, as JSON.

A script: it runs in the interpreter that has what the server imports.
"""

import contextlib
import importlib
import json
import sys

from rollbook.scoring.aggregate import AggregateMetricsMixin, compute_aggregate_metrics


def server_of(module):
    """Return the server that `module` itself defines, without the configuration that its hooks do not read."""
    defined = [value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__]
    (server,) = (kind for kind in defined if isinstance(kind, type) and issubclass(kind, AggregateMetricsMixin))
    return object.__new__(server)


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):  # some of what a server imports greets whoever imports it
        server = server_of(importlib.import_module(f"{sys.argv[1]}.app"))
    rows = [json.loads(line) for line in sys.stdin]
    hooks = (server.compute_metrics, server.get_key_metrics, server.compute_repeat_metrics)
    sys.stdout.write(compute_aggregate_metrics(rows, *hooks).model_dump_json())

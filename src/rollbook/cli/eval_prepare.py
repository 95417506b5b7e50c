"""`gym eval prepare`: the flags of preparing benchmarks' data.

Rules:
* No server is started, and no model is named.

Source: servers.md §8.10, §10.2.
"""

from typing import Any

import click

from rollbook.cli.flags import benchmark_flag, config_flags, isolation_flags, overrides_argument
from rollbook.cli.verb import VerbCommand, wants_json


@click.command("prepare", cls=VerbCommand, reports=True)
@config_flags
@benchmark_flag
@isolation_flags
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Write the data sets of benchmarks, from what their authors publish.

    The published files are fetched; or name one, or a folder that holds them: +prepare_script_args.source=PATH.
    +use_cached_prepared_benchmarks=true takes data sets that are there, +num_prepare_benchmark_processes=N prepares N
    at a time, and +prepare_script_args.NAME=VALUE goes to every script.

    Exit code: 0 all are prepared, 1 at least one is not.
    """
    from rollbook.cli.eval_prepare_session import prepare  # noqa: PLC0415  paid for by this verb alone

    return prepare(given, as_json=wants_json(context))

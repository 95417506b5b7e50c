"""`gym eval aggregate`: the flags of scoring results that are there already.

Rules:
* Shards are read and never written; the output is written whole.

Source: collection.md §6.2, §10.4, §10.7.
"""

from typing import Any, Final

import click

from rollbook.cli.flags import config_flags, flags, health_check_options, overrides_argument
from rollbook.cli.verb import VerbCommand, is_verbose, wants_json

_options: Final = flags(
    click.option(
        "-i",
        "--input-glob",
        "input_glob",
        metavar="A,B",
        help="The results to aggregate: files, folders or patterns (required).",
    ),
    click.option(
        "-o",
        "--output",
        "output_jsonl_fpath",
        metavar="FILE",
        help="Where merged rows go; reports go beside it (required).",
    ),
    click.option(
        "--merge/--no-merge",
        "merge_shards",
        default=None,
        help="Write the results of all shards to the output, sorted.  [default: merge]",
    ),
    click.option(
        "--materialized-inputs",
        "materialized_inputs_jsonl_fpath",
        metavar="FILE",
        help="What was planned over all shards, where no plan is beside them.",
    ),
    click.option("--require-complete", is_flag=True, default=None, help="End with 4 unless every rollout is scored."),
    click.option(
        "--min-coverage",
        type=float,
        metavar="SHARE",
        help="Give no headline that speaks for a smaller share of the plan.  [default: 0.95]",
    ),
    click.option(
        "--count-failure-class-as-zero",
        "count_failure_classes_as_zero",
        multiple=True,
        metavar="CLASS",
        help="Count failures of this class as reward 0 (repeatable).",
    ),
    click.option(
        "--count-missing-as-zero",
        "count_missing_rollouts_as_zero",
        is_flag=True,
        default=None,
        help="Count planned rollouts that left nothing as reward 0.",
    ),
    *health_check_options,
)


@click.command("aggregate", cls=VerbCommand, reports=True, short_help="Score results that are there already.")
@config_flags
@_options
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Score the results of one or several runs, and merge them into one file.

    Metrics are the environment servers' own where a deployment is up, and what any server computes elsewhere; entries
    say which. Rollouts are told apart by server, task and repeat.

    Exit code: 0; 1 when shards cannot be aggregated together or a server gave no metrics; 4 with --require-complete
    when not everything is scored; 5 when a file is damaged or a result is in no plan.
    """
    from rollbook.cli.loading import loading  # noqa: PLC0415  paid for by this verb alone

    with loading():
        from rollbook.cli.aggregate_session import show_aggregation  # noqa: PLC0415  the same

    return show_aggregation(given, as_json=wants_json(context), verbose=is_verbose(context))

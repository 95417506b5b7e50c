"""`gym eval reverify`: the flags of judging saved answers again.

Rules:
* A flag that was not given sets nothing: files, `env.yaml` and overrides keep their say.
* No model is asked for an answer; what serves is started as for a run.

Source: collection.md §9.1, §10.5; servers.md §10.2.
"""

from typing import Any, Final

import click

from rollbook.cli.flags import config_flags, flags, isolation_flags, model_flags, overrides_argument, selector_flags
from rollbook.cli.loading import loading
from rollbook.cli.verb import VerbCommand, is_verbose, wants_json

_serving: Final = flags(
    click.option("--no-serve", is_flag=True, help="Ask servers that are already up; start none."),
    click.option(
        "--serve",
        type=click.Choice(["embedded", "processes"]),
        default="embedded",
        show_default=True,
        help="All servers in this process, or one process each.",
    ),
    click.option("--log-dir", "nemo_gym_log_dir", metavar="DIR", help="Where server processes write their logs."),
)
_answers: Final = flags(
    click.option("--rollouts", "rollouts_jsonl_fpath", metavar="RUN", help="The run whose answers are judged."),
    click.option(
        "--inputs",
        "materialized_inputs_jsonl_fpath",
        metavar="FILE",
        help="Its planned rows.  [default: those beside the rollouts]",
    ),
    click.option(
        "--input-format", type=click.Choice(["gym", "atif"]), help="A run's files, or trajectories.  [default: gym]"
    ),
    click.option(
        "--atif-manifest", "atif_manifest_jsonl_fpath", metavar="FILE", help="The list of trajectories, as JSONL."
    ),
    click.option("--limit", type=int, metavar="N", help="Judge the first N answers, those that are done included."),
    click.option(
        "--judge-failed-only",
        is_flag=True,
        default=None,
        help="Judge what a judge had failed on; results that are there are kept.",
    ),
)
_output: Final = flags(
    click.option(
        "-o",
        "--output",
        "output_jsonl_fpath",
        metavar="FILE",
        help="Where rewards go, as JSONL (required).  [default, with --append: the run itself]",
    ),
    click.option("--overwrite", is_flag=True, default=None, help="Replace an earlier output."),
    click.option("--resume", "resume_from_cache", is_flag=True, default=None, help="Judge what the output still owes."),
    click.option(
        "--append",
        is_flag=True,
        default=None,
        help="With --judge-failed-only: add to the output, or the run itself.",
    ),
    click.option(
        "--force",
        is_flag=True,
        default=None,
        help="Have servers judge that may need the episode; the output's name then begins with unsafe_.",
    ),
    click.option("--take-over", is_flag=True, default=None, help="Claim the output from a process that is gone."),
    click.option(
        "--durability",
        type=click.Choice(["sync", "flush", "off"]),
        help="When a line counts as written: on the disk, given to the system, or not waited for.  [default: sync]",
    ),
)
_running: Final = flags(
    click.option(
        "--concurrency", "num_samples_in_parallel", type=int, metavar="N", help="Judgings at a time.  [default: 64]"
    ),
    click.option(
        "--timeout",
        "rollout_timeout_s",
        type=float,
        metavar="S",
        help="Seconds that a judging may take.",
    ),
    click.option(
        "--retry-for",
        "retry_for_s",
        type=float,
        metavar="S",
        help="Seconds to try again what a server turned away or never got.  [default: 600]",
    ),
    click.option(
        "--grace",
        "interrupt_grace_s",
        type=float,
        metavar="S",
        help="Seconds that judgings in flight have to end after a signal.  [default: 20]",
    ),
    click.option(
        "--route-failures/--no-route-failures",
        "route_failures_to_sidecar",
        default=None,
        help="Write judgings that fail beside the results and go on, or stop at the first.  [default: stop]",
    ),
    click.option("--disable-aggregation", is_flag=True, default=None, help="Judge, and compute no metrics."),
)


@click.command("reverify", cls=VerbCommand, reports=True, short_help="Judge saved answers again.")
@config_flags
@selector_flags
@_serving
@isolation_flags
@_answers
@_output
@model_flags
@_running
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Judge saved answers again: their rewards are computed anew, and no model is asked for an answer.

    Rewards go to an output of their own, which is a run like any other; --judge-failed-only --append without --output
    adds what a judge owes to the run itself. What changed is printed: the mean before and after, and which rewards.

    Exit code: 0 everything that was to be judged is, 3 something is left that --resume would judge, 1 refused.
    """
    with loading():
        from rollbook.cli.eval_reverify_session import run_reverification  # noqa: PLC0415  paid for by this verb alone

    return run_reverification(given, as_json=wants_json(context), verbose=is_verbose(context))

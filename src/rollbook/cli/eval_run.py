"""`gym eval run`: the flags of a collection.

Rules:
* A flag that was not given sets nothing: files, `env.yaml` and overrides keep their say.
* Failures go to the sidecar and as many rollouts are in flight as pays, unless something says otherwise.

Source: collection.md §10.7; servers.md §10.2.
"""

from typing import Any, Final

import click

from rollbook.cli.flags import (
    config_flags,
    flags,
    health_check_options,
    isolation_flags,
    model_flags,
    overrides_argument,
    selector_flags,
)
from rollbook.cli.loading import loading
from rollbook.cli.verb import VerbCommand, is_verbose, wants_json


class Concurrency(click.ParamType[int | str]):
    """A number of rollouts, or `auto`."""

    name = "concurrency"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        """Return the number, or `auto`; anything else is a mistake of usage."""
        if value == "auto":
            return "auto"
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a number nor auto", param, ctx)


_serving: Final = flags(
    click.option("--no-serve", is_flag=True, help="Collect from servers that are already up; start none."),
    click.option(
        "--serve",
        type=click.Choice(["embedded", "processes"]),
        default="embedded",
        show_default=True,
        help="All servers in this process, or one process each.",
    ),
    click.option("--log-dir", "nemo_gym_log_dir", metavar="DIR", help="Where server processes write their logs."),
)
_data: Final = flags(
    click.option("-i", "--input", "input_jsonl_fpath", metavar="FILE", help="Rows to run, as JSONL."),
    click.option("-o", "--output", "output_jsonl_fpath", metavar="FILE", help="Where results go, as JSONL (required)."),
    click.option("--overwrite", is_flag=True, default=None, help="Replace an earlier run at the output."),
    click.option("--resume", "resume_from_cache", is_flag=True, default=None, help="Continue the run at the output."),
    click.option(
        "--resubmit", is_flag=True, default=None, help="Continue it, and run again what was held for a decision."
    ),
    click.option(
        "--take-over", is_flag=True, default=None, help="Claim the run from a process on another host that is gone."
    ),
    click.option(
        "--durability",
        type=click.Choice(["sync", "flush", "off"]),
        help="When a line counts as written: on the disk, given to the system, or not waited for.  [default: sync]",
    ),
    click.option(
        "--split", metavar="SPLIT", help="A split of the configuration's datasets: train, validation, benchmark."
    ),
    click.option("--limit", type=int, metavar="N", help="Run the first N tasks; 0 runs none."),
    click.option(
        "--task-shard", metavar="K/N", help="Run the K-th of N parts of the tasks, numbered as in the whole of them."
    ),
    click.option("--num-repeats", type=int, metavar="N", help="Rollouts per task.  [default: 1]"),
    click.option("--interleave-repeats", is_flag=True, default=None, help="All first repeats, then all second ones."),
    click.option("--prompt-config", metavar="PATH", help="A prompt that is filled in from each row."),
    click.option("-a", "--agent", "agent_name", metavar="NAME", help="Send every row to this agent."),
)
_running: Final = flags(
    click.option(
        "--concurrency",
        "num_samples_in_parallel",
        type=Concurrency(),
        metavar="N",
        help="Rollouts in flight at a time, or `auto`: as many as pays.  [default: auto]",
    ),
    click.option(
        "--timeout",
        "rollout_timeout_s",
        type=float,
        metavar="S",
        help="Seconds that a rollout may take once its request is sent.  [default: as long as it needs]",
    ),
    click.option(
        "--budget",
        "dispatch_budget_s",
        type=float,
        metavar="S",
        help="Start nothing later than S seconds after the start, and end once what is in flight has.",
    ),
    click.option(
        "--drain-margin",
        "drain_margin_s",
        type=float,
        metavar="S",
        help="Start nothing with less than S seconds of the budget left.  [default: what 3 of 4 rollouts took at most]",
    ),
    click.option(
        "--group-scored",
        is_flag=True,
        default=None,
        help="The repeats of a task are scored together: send all of them again when one is missing.",
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
        help="Seconds that work in flight has to end after a signal.  [default: 20]",
    ),
    click.option("--temperature", type=float, metavar="T", help="Sampling temperature, for every row."),
    click.option("--top-p", type=float, metavar="P", help="Nucleus sampling, for every row."),
    click.option("--max-output-tokens", type=int, metavar="N", help="Longest answer, for every row."),
    click.option(
        "--route-failures/--no-route-failures",
        "route_failures_to_sidecar",
        default=None,
        help="Write failed rollouts beside the results and go on, or stop at the first.  [default: route]",
    ),
)
_after: Final = flags(
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
        help="Score rollouts whose latest failure is of this class as 0; may be given again.",
    ),
    click.option(
        "--count-missing-as-zero",
        "count_missing_rollouts_as_zero",
        is_flag=True,
        default=None,
        help="Score rollouts that left neither a result nor a failure as 0.",
    ),
    click.option("--disable-aggregation", is_flag=True, default=None, help="Collect, and compute no metrics."),
    *health_check_options,
)


@click.command("run", cls=VerbCommand, reports=True, short_help="Collect rollouts and score them.")
@config_flags
@selector_flags
@_serving
@isolation_flags
@_data
@model_flags
@_running
@_after
@overrides_argument
@click.pass_context
def command(context: click.Context, /, **given: Any) -> int:
    """Collect rollouts of the input's tasks, score them, and say what share of the plan the scores speak for.

    Servers of the configuration are started for the run, unless --no-serve is given. Free arguments override
    configuration keys: key=value, +key=value, ++key=value, ~key.

    Exit code: 0 a resume would run nothing, 3 it would, 4 with --require-complete when not everything is scored, 5 a
    file is damaged, 128 and the signal's number after a signal.
    """
    with loading():
        from rollbook.cli.eval_session import run_evaluation  # noqa: PLC0415  paid for by this verb alone
        from rollbook.config.collection import RolloutCollectionConfig  # noqa: PLC0415  the same

        RolloutCollectionConfig.model_rebuild()  # or its validator would be made when it is first used

    return run_evaluation(given, as_json=wants_json(context), verbose=is_verbose(context))

"""One `gym eval reverify`, from its flags to what it prints.

Rules:
* What changed and the files go to standard output; progress and notes go to standard error.

Source: collection.md §9.1, §10.5.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from rollbook.api.request import ServeMode
from rollbook.api.reverification import ReverificationRequest, ReverificationResult, reverify
from rollbook.cli.configuration import given_values, notes_on_strays, refuse_isolation_of_others, resolved_configuration
from rollbook.cli.eval_session import log_dir_of
from rollbook.cli.event_loop import in_event_loop
from rollbook.cli.resume_command import command_line
from rollbook.cli.run_outputs import run_named
from rollbook.cli.signals import heard
from rollbook.cli.terminal import note, say, say_json
from rollbook.clock import Clock, SystemClock
from rollbook.config.reverification import RolloutReverificationConfig
from rollbook.config.settings import settings_from
from rollbook.dispatch.stop import Stop
from rollbook.ledger.paths import materialized_path_for
from rollbook.live.view import View, beating, view_for
from rollbook.report.reverify_text import reverify_json, reverify_text

_SETTINGS: Final = tuple(RolloutReverificationConfig.model_fields)
_LEFT: Final = 3


def run_reverification(given: Mapping[str, Any], *, as_json: bool, verbose: bool) -> int:
    """Judge again what the flags in `given` name, print what changed, and return the command's exit code."""
    refuse_isolation_of_others(given)
    serve = ServeMode.NONE if given["no_serve"] else ServeMode(given["serve"])
    settings_given = with_companions(given_values(given, _SETTINGS))
    cfg = resolved_configuration(
        given,
        settings=settings_given,
        verbose=verbose,
        private_head=serve is not ServeMode.NONE,
        with_agents=False,
    )
    settings = settings_from(RolloutReverificationConfig, cfg)
    for text in notes_on_strays(given, cfg, {*RolloutReverificationConfig.model_fields, "upload_rollouts_to_wandb"}):
        note(text)
    clock, stop = SystemClock(), Stop()
    view = view_for(sys.stderr, clock)
    request = ReverificationRequest(settings, cfg, serve, view.observe, log_dir_of(cfg), command_line())
    result = in_event_loop(_watched(request, view, clock, stop))
    code = stop.exit_code if stop.exit_code is not None else (_LEFT if result.left else 0)
    if as_json:
        say_json(reverify_json(result) | {"exit_code": code})
    else:
        say(reverify_text(result))
    if result.stopped is not None:
        note(f"Stopped early: {result.stopped}. What was judged is in {result.output}; go on with --resume.")
    return code


def with_companions(settings: dict[str, object]) -> dict[str, object]:
    """Return settings in which a run stands for its files: its planned rows, and itself where it is added to."""
    named = settings.get("rollouts_jsonl_fpath")
    if not isinstance(named, str):
        return settings
    output = named if Path(named).is_file() and not _is_companion(named) else str(run_named(named))
    companions: dict[str, object] = {"materialized_inputs_jsonl_fpath": str(materialized_path_for(Path(output)))}
    if settings.get("append") and settings.get("judge_failed_only"):
        companions["output_jsonl_fpath"] = output
    return companions | settings | {"rollouts_jsonl_fpath": output}


def _is_companion(named: str) -> bool:
    return run_named(named) != Path(named)


async def _watched(request: ReverificationRequest, view: View, clock: Clock, stop: Stop) -> ReverificationResult:
    with heard(stop, request.settings.interrupt_grace_s):
        async with beating(view, clock):
            return await reverify(request, clock, stop)

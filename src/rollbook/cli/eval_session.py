"""One `gym eval run`, from its flags to its printed table.

Rules:
* The engine is called once; nothing here loops over rollouts.
* The table and the files go to standard output; progress and notes go to standard error.

Source: servers.md §10.2; collection.md §10.7.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict
from omegaconf import DictConfig

from rollbook.api.evaluation import evaluate
from rollbook.api.request import EvaluationRequest, EvaluationResult, ServeMode
from rollbook.cli.configuration import refuse_isolation_of_others, resolved_configuration
from rollbook.cli.eval_benchmark import with_benchmark_rows
from rollbook.cli.eval_settings import collection_settings, notes_on_typed_keys, settings_given
from rollbook.cli.event_loop import in_event_loop
from rollbook.cli.resume_command import command_line, resume_command
from rollbook.cli.signals import heard
from rollbook.cli.terminal import note, say, say_error, say_json
from rollbook.clock import Clock, SystemClock
from rollbook.config.collection import RolloutCollectionConfig
from rollbook.dispatch.stop import Stop
from rollbook.errors import EarlyStopError, IncompleteEvaluationError, LedgerError, RunError, RunStoppedError
from rollbook.ledger.paths import RunPaths
from rollbook.live.view import View, beating, view_for
from rollbook.records.coverage import Coverage
from rollbook.records.json_values import JsonObject
from rollbook.records.run_status import code_of
from rollbook.report.json_report import json_report
from rollbook.report.table import render
from rollbook.scoring.tally import RunScores
from rollbook.verbs.metrics_file import warnings_of


def run_evaluation(given: Mapping[str, Any], *, as_json: bool, verbose: bool) -> int:
    """Collect what the flags in `given` ask for, print what came of it, and return the command's exit code."""
    refuse_isolation_of_others(given)
    serve = ServeMode.NONE if given["no_serve"] else ServeMode(given["serve"])
    cfg = resolved_configuration(
        given, settings=settings_given(given), verbose=verbose, private_head=serve is not ServeMode.NONE
    )
    cfg = with_benchmark_rows(given, cfg, serving=serve is not ServeMode.NONE)
    settings, preparation, notes = collection_settings(cfg, serving=serve is not ServeMode.NONE)
    for text in (*notes_on_typed_keys(given, cfg), *notes):
        note(text)
    clock, stop = SystemClock(), Stop()
    view = view_for(sys.stderr, clock)
    request = EvaluationRequest(
        settings, cfg, serve, view.observe, log_dir_of(cfg), command_line(), preparation=preparation
    )
    try:
        result = in_event_loop(_watched(request, view, clock, stop))
    except RunError as error:
        return _told(error, request, stop, as_json=as_json)
    except (KeyboardInterrupt, asyncio.CancelledError):
        _say_how_to_go_on(settings, finished=_has_lines(settings))
        raise KeyboardInterrupt from None
    code = _exit_code(result, settings, stop)
    _show(result, code, as_json=as_json)
    if result.stopped is not None:
        note(f"Stopped early: {result.stopped}.")
        _say_how_to_go_on(settings, finished=result.coverage.settled_with_result > 0)
    elif result.coverage.owed:
        note(f"A resume would run {result.coverage.owed} of {result.coverage.planned} rollouts.")
        _say_how_to_go_on(settings, finished=False)
    return code


def _exit_code(result: EvaluationResult, settings: RolloutCollectionConfig, stop: Stop) -> int:
    if stop.exit_code is not None:
        return stop.exit_code
    return code_of(result.coverage, believable=not result.damaged, require_complete=settings.require_complete)


def _told(error: RunError, request: EvaluationRequest, stop: Stop, *, as_json: bool) -> int:
    """Show what a run came to that ended without what it promised, and return the exit code."""
    result, settings = error.result, request.settings
    if not isinstance(result, EvaluationResult):
        return _without_result(error, settings, stop)
    code = _code_after(error, result, settings, stop)
    _show(result, code, as_json=as_json)
    say_error(str(error))
    is_of_no_use = isinstance(error, EarlyStopError) and not error.resumable
    if not is_of_no_use and (result.coverage.owed or stop.why is not None):
        _say_how_to_go_on(settings, finished=result.coverage.settled_with_result > 0)
    return code


def _code_after(error: RunError, result: EvaluationResult, settings: RolloutCollectionConfig, stop: Stop) -> int:
    """Return the exit code of a run that ended with `error` and came to `result`."""
    if isinstance(error, EarlyStopError) and not error.resumable:
        return RunError.exit_code
    code = _exit_code(result, settings, stop)
    is_rejection = isinstance(error, IncompleteEvaluationError) and not isinstance(error, EarlyStopError)
    if is_rejection:
        return max(code, error.exit_code)
    return code or (error.exit_code if isinstance(error, LedgerError) else code)


def _without_result(error: RunError, settings: RolloutCollectionConfig, stop: Stop) -> int:
    """Tell of an error that left nothing to show; without a stop, that is for whoever called."""
    if stop.why is None:
        raise error
    is_asked_for = isinstance(error, RunStoppedError) and stop.exit_code is not None
    (note if is_asked_for else say_error)(str(error))
    _say_how_to_go_on(settings, finished=_has_lines(settings))
    return error.exit_code if stop.exit_code is None or not is_asked_for else stop.exit_code


def _has_lines(settings: RolloutCollectionConfig) -> bool:
    output = Path(settings.output_jsonl_fpath)
    return output.exists() and output.stat().st_size > 0


def _say_how_to_go_on(settings: RolloutCollectionConfig, *, finished: bool) -> None:
    output = Path(settings.output_jsonl_fpath)
    if output.exists() or RunPaths(output).manifest.exists():
        where = f"What finished is in {output}. " if finished else ""
        note(f"{where}Go on with:\n  {resume_command(sys.argv)}")


async def _watched(request: EvaluationRequest, view: View, clock: Clock, stop: Stop) -> EvaluationResult:
    with heard(stop, request.settings.interrupt_grace_s):
        async with beating(view, clock):
            return await evaluate(request, clock, stop)


def log_dir_of(cfg: DictConfig) -> Path | None:
    """Return where server processes write their logs, when the configuration says so."""
    configured = cfg.get("nemo_gym_log_dir")
    return Path(str(configured)) if configured else None


def _dispatch(result: EvaluationResult) -> JsonObject:
    """Return how the session's rollouts were sent: seconds from the first send to the last commit, and the limits.

    The limits are timed in seconds from the session's start, which is when the first of them came into force.
    """
    pace, changes = result.pace, result.concurrency
    began = changes[0].at if changes else 0.0
    told = {"attempts": pace.started, "ended": pace.ended, "refused": pace.refused, "seconds": pace.seconds}
    history = [asdict(change) | {"at": change.at - began} for change in changes]
    rates: JsonObject = {"rollouts_per_second": pace.per_second, "event_loop_lag_p99": result.loop_lag}
    return {"dispatch": told | rates | {"concurrency": history}}


def _show(result: EvaluationResult, code: int, *, as_json: bool) -> None:
    report = (result.scores, result.coverage, result.files)
    if as_json:
        end: JsonObject = {"run_id": result.run_id, "stopped": result.stopped, "exit_code": code}
        more: JsonObject = {"metrics": list(result.metrics), "notes": [*result.notes]}
        document = json_report(*report)
        document["warnings"] = [*result.scores.warnings, *warnings_of(result.metrics)]
        say_json(end | document | _dispatch(result) | more)
    elif sys.stdout.isatty():
        _draw(*report)
    else:
        say(render(*report))


def _draw(scores: RunScores, coverage: Coverage, files: Mapping[str, Path]) -> None:
    from rich.console import Console  # noqa: PLC0415  a report that goes to a file needs none

    from rollbook.report.layout import laid_out  # noqa: PLC0415  the same

    Console().print(laid_out(scores, coverage, files), crop=False)

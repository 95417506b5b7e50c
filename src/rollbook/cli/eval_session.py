"""One `gym eval run`, from its flags to its printed table.

Rules:
* The engine is called once; nothing here loops over rollouts.
* The table and the files go to standard output; progress and notes go to standard error.

Source: servers.md §10.2; collection.md §10.7.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from omegaconf import DictConfig
from rich.console import Console

from rollbook.api.evaluation import evaluate
from rollbook.api.request import EvaluationRequest, EvaluationResult, ServeMode
from rollbook.cli.configuration import resolved_configuration
from rollbook.cli.eval_settings import collection_settings, settings_given
from rollbook.cli.event_loop import in_event_loop
from rollbook.cli.terminal import note, say, say_json
from rollbook.clock import Clock, SystemClock
from rollbook.live.view import View, beating, view_for
from rollbook.report.json_report import json_report
from rollbook.report.layout import laid_out
from rollbook.report.table import render


def run_evaluation(given: Mapping[str, Any], *, as_json: bool, verbose: bool) -> None:
    """Collect what the flags in `given` ask for, and print what came of it."""
    serve = ServeMode.NONE if given["no_serve"] else ServeMode(given["serve"])
    cfg = resolved_configuration(
        given, settings=settings_given(given), verbose=verbose, private_head=serve is not ServeMode.NONE
    )
    settings, notes = collection_settings(cfg, serving=serve is not ServeMode.NONE)
    for text in notes:
        note(text)
    clock = SystemClock()
    view = view_for(sys.stderr, clock)
    request = EvaluationRequest(settings, cfg, serve, view.observe, log_dir_of(cfg))
    try:
        result = in_event_loop(_watched(request, view, clock))
    except KeyboardInterrupt:
        _say_how_to_go_on(Path(settings.output_jsonl_fpath))
        raise
    _show(result, as_json=as_json)


def _say_how_to_go_on(output: Path) -> None:
    if output.exists():
        note(f"What finished is in {output}; go on with --resume.")


async def _watched(request: EvaluationRequest, view: View, clock: Clock) -> EvaluationResult:
    async with beating(view, clock):
        return await evaluate(request)


def log_dir_of(cfg: DictConfig) -> Path | None:
    """Return where server processes write their logs, when the configuration says so."""
    configured = cfg.get("nemo_gym_log_dir")
    return Path(str(configured)) if configured else None


def _show(result: EvaluationResult, *, as_json: bool) -> None:
    for text in result.notes:
        note(text)
    report = (result.scores, result.coverage, result.files)
    console = Console()
    if as_json:
        say_json(json_report(*report) | {"metrics": list(result.metrics), "notes": list(result.notes)})
    elif console.is_terminal:
        console.print(laid_out(*report), crop=False)
    else:
        say(render(*report))

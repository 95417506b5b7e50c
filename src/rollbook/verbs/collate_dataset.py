"""The rows of one declared data set, made ready: prompt, checks, metrics, and where they come from.

Rules:
* Rows stream: each is looked at once and none is kept; of what is wrong with them, the first places are.
* A row is told by file and line. Everything that is wrong with a data set is told at once.
* A row has the parameters of a Responses request, unless it is or becomes an episode task.
* A row goes by its task source; it names an agent only where its data set pins one that the source does not lead to.

Source: servers.md §8.2, §8.9.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal

import msgspec
from omegaconf import DictConfig
from pydantic import ValidationError

from rollbook.config.declared_datasets import DeclaredDataset
from rollbook.config.names import AGENTS
from rollbook.config.routing import resolve_dataset_agent, resolve_task_source
from rollbook.errors import ConfigError, InputError
from rollbook.inputs.dataset_hook import load_task_metrics
from rollbook.inputs.jsonl import key_twice, read_source_rows
from rollbook.inputs.prompts import fill_prompts, load_prompt_config
from rollbook.inputs.task_data import TaskDataValidator, load_task_data_schema
from rollbook.plan.materialize import materialize_task
from rollbook.records.json_values import JsonObject
from rollbook.records.keys import AGENT_REF_KEY, RESPONSES_CREATE_PARAMS_KEY, TASK_SOURCE_KEY
from rollbook.records.source import SourceRow, is_materialized
from rollbook.servers.openai.openai_response import NeMoGymResponseCreateParamsNonStreaming
from rollbook.verbs.dataset_metrics import DatasetMetrics

Validation = Literal["off", "warn", "error", "auto"]
_LISTED: Final = 20


class RowFaults(msgspec.Struct):
    """What is wrong with rows: the first of it in words, the rest counted."""

    told: list[str] = msgspec.field(default_factory=list)
    count: int = 0

    def add(self, text: str) -> None:
        """Note one thing that is wrong."""
        self.count += 1
        if self.count <= _LISTED:
            self.told.append(text)

    def lines(self) -> list[str]:
        """Return it in lines."""
        return [*self.told, *([f"and {self.count - _LISTED} more"] if self.count > _LISTED else ())]


class DatasetRows:
    """Gives the rows of a data set as they are to be collected; `problems` and `notes` say what was found in them."""

    def __init__(self, cfg: DictConfig, declared: DeclaredDataset, path: Path, validation: Validation) -> None:
        self.declared, self.path = declared, path
        self.metrics = DatasetMetrics()
        self._faults, self._doubles = RowFaults(), RowFaults()
        self._level = validation
        folder = declared.folder
        schema = load_task_data_schema(folder) if folder is not None and validation != "off" else None
        self._task_data = TaskDataValidator(declared.instance, schema, str(path))
        self._computed = load_task_metrics(folder) if folder is not None else None
        prompt = declared.entry.prompt_config
        self._prompt = None if prompt is None else load_prompt_config(prompt)
        self._pin = _pin(cfg, declared)

    def rows(self, first: int, totals: DatasetMetrics | None) -> Iterator[JsonObject]:
        """Yield the rows, once each; `first` numbers those without an id. `totals` sums up several data sets.

        Raises:
            InputError: lines that are no rows, or rows that a prompt cannot be filled in for; told after the last one.

        """
        sources = read_source_rows(self.path)
        repeats = self.declared.entry.num_repeats
        for index, source in enumerate(sources if self._prompt is None else fill_prompts(self._prompt, sources), first):
            self._look(source)
            computed = None if self._computed is None else self._metrics_of(source)
            for metrics in (self.metrics, *([totals] if totals is not None else ())):
                metrics.add(source.row, computed, repeats)
            yield self._stamped(source, index)

    @property
    def problems(self) -> list[str]:
        """What is wrong with the rows that were given."""
        report = self._task_data.report
        wrong = (self._level == "error" and not report.clean) or (self._level == "auto" and report.error_rows)
        return [*self._faults.lines(), *([report.summary()] if wrong else ())]

    @property
    def notes(self) -> list[str]:
        """What is to be known of the rows that were given, and keeps nobody from using them."""
        report = self._task_data.report
        told = [report.summary()] if self._level in {"warn", "auto"} and not (report.clean or self.problems) else []
        told += self._doubles.lines()
        if self.metrics.left_out:
            told.append(f"{self.path}: so many fields differ from row to row that the metrics tell of the first alone")
        return told

    def _look(self, source: SourceRow) -> None:
        twice = key_twice(source.text)
        if twice is not None:
            self._doubles.add(f"{source.place}: `{twice}` stands there twice; the last one counts")
        if self._level != "off":
            self._task_data.validate_row(source.number, source.row)
        task = source.row["task_input"] if is_materialized(source.row) else source.row
        params = task.get(RESPONSES_CREATE_PARAMS_KEY) if isinstance(task, dict) else None
        if not isinstance(params, dict):
            if not is_materialized(source.row) and self.declared.entry.taskset is None:
                self._faults.add(f"{source.place}: no `{RESPONSES_CREATE_PARAMS_KEY}` object")
            return
        try:
            NeMoGymResponseCreateParamsNonStreaming.model_validate(params)
        except ValidationError as error:
            self._faults.add(f"{source.place}: {RESPONSES_CREATE_PARAMS_KEY}.{_first(error)}")

    def _metrics_of(self, source: SourceRow) -> JsonObject | None:
        assert self._computed is not None  # noqa: S101  asked of components that compute something
        try:
            return self._computed(source.row)
        except ConfigError as error:
            self._faults.add(f"{source.place}: {error}")
            return None

    def _stamped(self, source: SourceRow, index: int) -> JsonObject:
        entry = self.declared.entry
        row = {key: value for key, value in source.row.items() if key != AGENT_REF_KEY}
        if entry.taskset is not None and not is_materialized(row):
            try:
                row = materialize_task(row, taskset=entry.taskset, task_index=index)
            except InputError as error:
                self._faults.add(f"{source.place}: {error}")
        row[TASK_SOURCE_KEY] = self.declared.instance
        return row if self._pin is None else row | {AGENT_REF_KEY: {"type": AGENTS, "name": self._pin}}


def _pin(cfg: DictConfig, declared: DeclaredDataset) -> str | None:
    """Return the agent that a data set pins, where its rows' task source does not lead there by itself.

    Raises:
        InputError: it pins one that is not there or does not fit.

    """
    pin = declared.entry.agent
    if pin is None:
        return None
    agent = resolve_dataset_agent(cfg, declared.instance, pin)
    try:
        return None if resolve_task_source(cfg, declared.instance) == agent else agent
    except InputError:
        return agent


def _first(error: ValidationError) -> str:
    """Say the first thing that a schema has against a row, and how much more there is."""
    details = error.errors(include_url=False, include_input=False, include_context=False)
    more = f" (and {len(details) - 1} more)" if len(details) > 1 else ""
    return f"{'.'.join(map(str, details[0]['loc']))}: {details[0]['msg']}{more}"

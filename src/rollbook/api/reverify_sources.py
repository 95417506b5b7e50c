"""Where answers come from that are judged again: a run's results, what its judge failed on, or trajectories.

Rules:
* A run may be running, dead or finished; it is read as it is when it is opened, and nothing of it is changed.
* Everything that keeps an answer from being judged is found before anything is sent.

Source: collection.md §9.1, §21.1 (3).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from rollbook.config.reverification import RolloutReverificationConfig
from rollbook.errors import ConfigPathNotFoundError, InputError, LedgerError
from rollbook.ledger.contradictions import told_of_doubles
from rollbook.ledger.history import prefixes, read_history
from rollbook.ledger.paths import RunPaths
from rollbook.records.identity import RolloutKey
from rollbook.records.standing import Standings
from rollbook.verbs.reverify_answers import Answers, JudgeFailures, Kind, SavedResults
from rollbook.verbs.reverify_plan import planned_in

_WHAT_INPUTS_ARE: Final = (
    ": the rows that were run, a JSON object a line with _ng_task_index, _ng_rollout_index and what the verifier reads "
    "(expected answers); a collector writes them beside its results as <stem>_materialized_inputs.jsonl"
)


class Source(Protocol):
    """What is judged, and what is known of it before; `seeds`: how many results are taken over at most."""

    kind: Kind
    inputs: Path
    named: Path
    answers: Answers
    results: SavedResults | None
    run_id: str | None
    seeds: int
    with_agents: bool

    def planned(self) -> Standings:
        """Return a fold of the planned rows."""
        ...

    def before(self) -> Standings:
        """Return how the rollouts stood before."""
        ...

    def refuse_unjudgeable(self, wanted: frozenset[RolloutKey] | None) -> None:
        """Refuse answers among the `wanted` that cannot be judged."""
        ...

    def notes(self) -> Iterator[str]:
        """Yield what is told of the answers before they are judged."""
        ...

    def refuse_tools(self, servers: Sequence[str]) -> None:
        """Refuse answers with tool calls that `servers`, whose tools are reached over MCP, cannot judge."""
        ...


def source_of(settings: RolloutReverificationConfig) -> Source:
    """Return what the settings name.

    Raises:
        ConfigPathNotFoundError: a file that is not there.
        InputError: a line that cannot be read.

    """
    inputs = existing(settings.materialized_inputs_jsonl_fpath, "--inputs", _WHAT_INPUTS_ARE)
    if settings.input_format == "atif":
        from rollbook.api.reverify_trajectories import trajectories_of  # noqa: PLC0415  few need them

        manifest = existing(settings.atif_manifest_jsonl_fpath or "", "--atif-manifest")
        return trajectories_of(manifest, inputs)
    return saved_run(existing(settings.rollouts_jsonl_fpath or "", "--rollouts"), inputs, settings)


def existing(name: str, flag: str, what: str = "") -> Path:
    """Return the path that a flag names; `what` it is to hold is told where nothing is there.

    Raises:
        ConfigPathNotFoundError: nothing is there.

    """
    path = Path(name)
    if not path.is_file():
        raise ConfigPathNotFoundError(f"{path}: no such file; name one with {flag}{what}")
    return path.resolve() if path.is_symlink() else path


@dataclass(slots=True)
class SavedRun:
    """The answers of a run."""

    kind: Kind
    inputs: Path
    named: Path
    answers: Answers
    results: SavedResults | None
    run_id: str | None
    seeds: int
    with_agents: bool = False

    def planned(self) -> Standings:
        """Return a fold of the planned rows."""
        return planned_in(self.inputs)

    def before(self) -> Standings:
        """Return how the rollouts stood before."""
        return Standings() if self.results is None else self.results.standings

    def refuse_unjudgeable(self, wanted: frozenset[RolloutKey] | None) -> None:
        """Refuse results without a response; a judge's failures were looked at when they were found."""
        if self.kind == "results" and self.results is not None:
            self.results.refuse_without_response(wanted)

    def notes(self) -> Iterator[str]:
        """Yield what is told of results that are there several times."""
        if self.results is not None:
            yield from told_of_doubles(self.results.paths, self.results.standings)

    def refuse_tools(self, servers: Sequence[str]) -> None:
        """Refuse nothing: what a run's own tools did is in its answers."""


def saved_run(rollouts: Path, inputs: Path, settings: RolloutReverificationConfig) -> SavedRun:
    """Return the answers of the run at `rollouts`."""
    paths, damage = RunPaths(rollouts), list[LedgerError]()
    history = read_history(paths, prefixes(paths), damage.append)
    if damage:
        raise InputError(str(damage[0]))
    results = SavedResults(paths, history.standings)
    run_id = history.manifest.run_id if history.manifest else None
    if not settings.judge_failed_only:
        return SavedRun("results", inputs, rollouts, results, results, run_id, seeds=0)
    failures = JudgeFailures.found(paths, with_invalid=settings.retry_invalid_judge_responses)
    seeds = sum(1 for key in results if not failures.holds(key))
    return SavedRun("judge_failures", inputs, rollouts, failures, results, run_id, seeds=seeds)

"""The names of a run's files, all derived from its output path.

Rules:
* A name is made here and nowhere else; nothing is read or created.

Source: collection.md §1.2.
"""

from pathlib import Path

import msgspec

from rollbook.records.place import File


def failures_path_for(output: Path) -> Path:
    """Return the failures sidecar beside `output`."""
    return output.with_name(f"{output.stem}_failures.jsonl")


def materialized_path_for(output: Path) -> Path:
    """Return the materialized inputs beside `output`."""
    return output.with_name(f"{output.stem}_materialized_inputs.jsonl")


def aggregate_metrics_path_for(output: Path) -> Path:
    """Return the aggregate metrics beside `output`."""
    return output.with_name(f"{output.stem}_aggregate_metrics.json")


def manifest_path_for(output: Path) -> Path:
    """Return the run manifest beside `output`."""
    return output.with_name(f"{output.stem}_manifest.json")


def manifest_log_path_for(output: Path) -> Path:
    """Return the log of handed-out attempts beside `output`; no `*.jsonl` pattern of other readers finds it."""
    return output.with_name(f"{output.stem}_manifest.log")


def batch_status_path_for(output: Path) -> Path:
    """Return the status file beside `output`."""
    return output.with_name(f"{output.stem}_batch_status.json")


def coverage_path_for(output: Path) -> Path:
    """Return the coverage report beside `output`."""
    return output.with_name(f"{output.stem}_coverage.json")


def reward_profiling_path_for(output: Path) -> Path:
    """Return the profile of each task beside `output`."""
    return output.with_name(f"{output.stem}_reward_profiling.jsonl")


def agent_metrics_path_for(output: Path) -> Path:
    """Return the profile of each agent beside `output`."""
    return output.with_name(f"{output.stem}_agent_metrics.json")


def repeat_level_metrics_path_for(output: Path) -> Path:
    """Return the profile of each repeat beside `output`."""
    return output.with_name(f"{output.stem}_repeat_level_metrics.json")


class RunPaths(msgspec.Struct, frozen=True):
    """Every file of one run. `asked_by` is the option or argument that says where they lie, as people type it."""

    output: Path
    asked_by: str = "--output"

    @property
    def failures(self) -> Path:
        """The failures sidecar."""
        return failures_path_for(self.output)

    @property
    def materialized_inputs(self) -> Path:
        """The plan as written before anything is sent."""
        return materialized_path_for(self.output)

    @property
    def aggregate_metrics(self) -> Path:
        """What the servers computed over the results."""
        return aggregate_metrics_path_for(self.output)

    @property
    def manifest(self) -> Path:
        """What the run was asked to do."""
        return manifest_path_for(self.output)

    @property
    def manifest_log(self) -> Path:
        """Which attempts were handed out, cut, or never started."""
        return manifest_log_path_for(self.output)

    @property
    def batch_status(self) -> Path:
        """The counts for outer schedulers."""
        return batch_status_path_for(self.output)

    @property
    def coverage(self) -> Path:
        """What share of the plan the scores speak for, and what became of the rest."""
        return coverage_path_for(self.output)

    @property
    def lock(self) -> Path:
        """What one writer holds for as long as it writes."""
        return self.output.with_name(f".{self.output.stem}.lock")

    @property
    def control_socket(self) -> Path:
        """Where a live run hears what it is told."""
        return self.output.with_name(f".{self.output.stem}.sock")

    @property
    def every_file(self) -> tuple[Path, ...]:
        """The files that a run writes."""
        return (
            self.manifest,
            self.output,
            self.failures,
            self.materialized_inputs,
            self.aggregate_metrics,
            self.manifest_log,
            self.batch_status,
            self.coverage,
        )

    def holding(self, file: File) -> Path:
        """Return the file that a record's place names."""
        return self.output if file is File.RESULTS else self.failures

    def existing(self) -> tuple[Path, ...]:
        """Return those of the run's files that hold what a run found out or did; a plan alone holds nothing."""
        files = (self.output, self.failures, self.aggregate_metrics, self.manifest, self.manifest_log)
        return tuple(path for path in files if path.exists() and path.stat().st_size > 0)

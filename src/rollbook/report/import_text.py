"""What came of an import, for people and for programs.

Rules:
* Every planned rollout is in one of the counts; what is none is left out of the text, and 0 in JSON.
"""

from collections.abc import Mapping

from rollbook.records.json_values import JsonObject
from rollbook.report.shapes import VERSION


def import_text(told: Mapping[str, int], output: str, form: str, failures: Mapping[str, int]) -> str:
    """Return what was imported: `told` has logs, tasks, rollouts, scored, unscored, failed and missing."""
    named = ", ".join(f"{name} {count}" for name, count in failures.items())
    counts = {
        "scored": told["scored"],
        "without a score": told["unscored"],
        f"failed ({named})": told["failed"],
        "in no log": told["missing"],
    }
    shown = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "nothing"
    logs = "log" if told["logs"] == 1 else "logs"
    tasks = "task" if told["tasks"] == 1 else "tasks"
    rollouts = "rollout" if told["rollouts"] == 1 else "rollouts"
    imported = f"Imported {told['logs']} {form} {logs} into {output}:"
    return f"{imported} {told['rollouts']} {rollouts} of {told['tasks']} {tasks}.\nOf these: {shown}."


def import_json(told: Mapping[str, int], output: str, form: str, failures: Mapping[str, int]) -> JsonObject:
    """Return the same as one document."""
    counts = {"expected" if name == "rollouts" else name: count for name, count in told.items()}
    return VERSION | {"output": output, "form": form, **counts, "failed": dict(failures)}

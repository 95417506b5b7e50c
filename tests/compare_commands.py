"""What is typed to compare two runs, and what is left behind."""

import json

from rollbook.scoring.aggregate import compute_aggregate_metrics
from run_folder import rows_of, said


def dev(runs, *flags):
    return said(["dev", "compare", "--baseline", str(runs[0]), "--candidates", str(runs[1]), *flags])


def evaluated(runs, *flags):
    return said(["eval", "compare", "--baseline", str(runs[0]), "--candidates", str(runs[1]), *flags])


def policy(tmp_path, text):
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    return ["--gate", str(path)]


def report(folder):
    return json.loads((folder / "compare_report.json").read_text())


def aggregated(output):
    """Write the aggregate metrics of a run, as its server would."""
    kept = [{key: value for key, value in row.items() if key != "responses_create_params"} for row in rows_of(output)]
    metrics = compute_aggregate_metrics(kept).model_dump()
    path = output.with_name(f"{output.stem}_aggregate_metrics.json")
    path.write_text(json.dumps([{"agent_ref": {"name": "solver"}} | metrics], indent=2))
    return path

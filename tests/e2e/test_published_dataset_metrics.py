"""Metrics that others published beside their rows: ours of the same rows are equal, or the difference has a name.

Opt-in: ROLLBOOK_PUBLISHED_METRICS names a folder below which `<stem>_metrics.json` lie beside `<stem>.jsonl`.
"""

import json
import os
from pathlib import Path

import pytest

from rollbook.verbs.collate_metrics import metric_differences
from rollbook.verbs.dataset_metrics import COUNT, WORDS, DatasetMetrics

FOLDER = Path(os.environ.get("ROLLBOOK_PUBLISHED_METRICS") or "/nowhere")
OF_OTHER_ROWS = {
    **dict.fromkeys(("aalcr", "bunsenbench_chemistry_mcq", "circle_click", "finance_sec_search"), "other prompts"),
    **dict.fromkeys(("example_mcp_weather", "hotpotqa_qa", "iheval", "jailbreak_detection"), "other prompts"),
    **dict.fromkeys(("moldetox", "nvarc", "openair_congestion", "text_to_sql"), "other prompts"),
    **dict.fromkeys(("agentif", "gdpval", "math_formal_lean", "spartqa"), "written by hand, with names of their own"),
    "swe_agents": "five rows where one is",
}
WITH_ROUTING = {"moldetox", "swemer_v1", "swemer_v2"}
"""Published with `task_source` counted as a field of the task."""

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="ROLLBOOK_PUBLISHED_METRICS names no folder")


def published():
    for path in sorted(FOLDER.rglob("*_metrics.json")):
        rows = path.with_name(path.name.replace("_metrics.json", ".jsonl"))
        saved = json.loads(path.read_bytes())
        if rows.is_file() and isinstance(saved, dict) and COUNT in saved and WORDS in saved:
            yield path.parents[1].name, rows, saved


def test_metrics_of_the_same_rows_are_the_published_ones():
    differing, count = {}, 0
    for name, rows, saved in published():
        metrics = DatasetMetrics()
        for line in filter(bytes.strip, rows.read_bytes().splitlines()):
            metrics.add(json.loads(line))
        found = set(metric_differences(saved, metrics.told())) - ({"task_source"} if name in WITH_ROUTING else set())
        count += 1
        if found:
            differing[name] = found
    assert count >= 160
    assert {name: found for name, found in differing.items() if name not in OF_OTHER_ROWS} == {}

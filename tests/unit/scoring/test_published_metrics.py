"""Metric files that were published with example rollouts, computed anew from the rollouts beside them.

`ROLLBOOK_PUBLISHED_METRICS` names the folder that holds them, as `<name>/data/*_rollouts*_aggregate_metrics.json` (or
`_agent_metrics.json`) at any depth; without it there is nothing to compare with. Every difference has a reason below,
and every reason a difference.

What a server's own hooks make is compared too where `ROLLBOOK_SUITES` names the folder that holds the servers, as
`resources_servers/<name>/app.py`, and `ROLLBOOK_SUITES_PYTHON` an interpreter with the alias package and what those
servers import.
"""

import json
import math
import os
import subprocess
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec
import pytest

from rollbook.scoring.aggregate import compute_aggregate_metrics
from rollbook.scoring.streamed import StreamedMetrics
from rollbook.verbs.light_rows import light_row

FOLDER = os.environ.get("ROLLBOOK_PUBLISHED_METRICS")
FILES = (
    sorted(path for kind in ("aggregate", "agent") for path in Path(FOLDER).rglob(f"*_rollouts*_{kind}_metrics.json"))
    if FOLDER
    else []
)
INDICES = ("_ng_task_index", "_ng_rollout_index")
PARTS = ("agent_metrics", "key_metrics", "group_level_metrics", "repeat_level_metrics", "perf_summary")

OLDER = (
    "agent_metrics/num_repeats",
    "agent_metrics/*_across_repeats/*",
    "repeat_level_metrics",
    "group_level_metrics/expected_num_rollouts",
    "group_level_metrics/missing_num_rollouts",
    "group_level_metrics/num_rollouts",
    "group_level_metrics/reward_profile_completion_pct",
    "group_level_metrics/rollout_infos",
    "group_level_metrics/sample/*",
)
"""What the version that wrote a file did not write yet: repeats, a task's counts; its samples held less of a row."""

RENAMED = "group_level_metrics/sample/agent_ref*"
"""The one value of `OLDER` that a file holds and we do not: it says `agent` of whichever agent ran, or of none."""

OWN = {
    "asr_with_pc": (
        *("agent_metrics/corpus_wer@*", "agent_metrics/pass@1*", "agent_metrics/per@*", "agent_metrics/per_sample_*"),
        *("agent_metrics/wer_*", "key_metrics/*"),
    ),
    "fukuyamabench": ("agent_metrics/S/pass@1*", "key_metrics/*"),
    "litmus_agent": ("agent_metrics/direct", "key_metrics/*"),
    "moldetox": ("key_metrics/*",),
    "structeval": (
        *("agent_metrics/mean/key_validation_score_*", "agent_metrics/mean/render_score_*"),
        *("agent_metrics/mean/reward_*", "key_metrics/mean/key_validation_score_*", "key_metrics/mean/re*_*"),
    ),
    "mini_swe_agent_2": (
        *("agent_metrics/eval_*", "agent_metrics/max_rollouts_per_task", "agent_metrics/pass@1*"),
        *("agent_metrics/patch_applied_*", "agent_metrics/resolved_*", "agent_metrics/*_count"),
        *("agent_metrics/tests_status*", "key_metrics/*", "group_level_metrics/*_count"),
        *("group_level_metrics/instance_id", "group_level_metrics/resolved", "group_level_metrics/tests_status*"),
    ),
}
"""Servers with metrics of their own (`compute_metrics`, `get_key_metrics`), and the published keys that those make."""

HOOKED = {
    "litmus_agent": (
        *("agent_metrics/by_property", "agent_metrics/majority@1/*", "agent_metrics/pass@1/*"),
        *("agent_metrics/pass@1[[]avg-of-1]/*", "agent_metrics/per_sample_aggregate"),
        *("key_metrics/majority@1/*", "key_metrics/mean/*put_tokens", "key_metrics/pass@1/*"),
        *("key_metrics/pass@1[[]avg-of-1]/*",),
    ),
}
"""What a server's hooks write today and those that wrote its file did not write yet."""

SUITES, SUITES_PYTHON = os.environ.get("ROLLBOOK_SUITES"), os.environ.get("ROLLBOOK_SUITES_PYTHON")
HOOKED_FILES = [path for path in FILES if path.stem.endswith("_aggregate_metrics") and path.parent.parent.name in OWN]

pytestmark = pytest.mark.skipif(not FILES, reason="ROLLBOOK_PUBLISHED_METRICS names no folder with metric files")


def is_near(one, other):
    if isinstance(one, int | float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(is_near, one, other))
    return one == other


def differences(published, computed, place=""):
    if isinstance(published, dict) and isinstance(computed, dict):
        for key in published.keys() | computed.keys():
            yield from differences(published.get(key), computed.get(key), f"{place}/{key}" if place else key)
    elif isinstance(published, list) and isinstance(computed, list) and len(published) == len(computed):
        for one, other in zip(published, computed, strict=True):
            yield from differences(one, other, place)
    elif not is_near(published, computed):
        yield place, published is not None


def unexplained(found, reasons):
    """Return what `found` holds without a reason: what a file says differs for no reason of `OLDER` but `RENAMED`."""
    for key, said in sorted(found):
        older = fnmatchcase(key, RENAMED) or (not said and any(fnmatchcase(key, reason) for reason in OLDER))
        if not older and not any(fnmatchcase(key, reason) for reason in reasons):
            yield key


def unused(reasons, found):
    return [reason for reason in reasons if not any(fnmatchcase(key, reason) for key, _ in found)]


def rows_beside(path, kind):
    rollouts = path.with_name(f"{path.stem.removesuffix(f'_{kind}_metrics')}.jsonl")
    return [light_row(line) for line in rollouts.read_bytes().splitlines() if line.strip()]


def hooked(server, rows):
    """Have the hooks of `<shelf>/<name>` compute metrics where its packages are; JSON in, JSON out."""
    words = [SUITES_PYTHON, str(Path(__file__).with_name("hooked_metrics.py")), server.replace("/", ".")]
    folder = Path(SUITES, server)
    environment = os.environ | {"PYTHONPATH": f"{SUITES}{os.pathsep}{folder}"}
    return subprocess.run(words, input=rows, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE).stdout


def streamed(rows):
    entries = []
    metrics = StreamedMetrics(lambda entry: entries.append(msgspec.json.decode(entry)))
    for row in sorted(
        rows, key=lambda row: [msgspec.json.decode(row)[f"_ng_{key}_index"] for key in ("task", "rollout")]
    ):
        metrics.add(row)
    return msgspec.structs.asdict(metrics.end()) | {"group_level_metrics": entries}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.parent.name}/{path.stem}")
def test_a_published_file_is_computed_anew_from_the_rollouts_beside_it(path):
    kind = "aggregate" if path.stem.endswith("_aggregate_metrics") else "agent"
    rows = rows_beside(path, kind)
    computed = compute_aggregate_metrics([msgspec.json.decode(row) for row in rows]).model_dump()
    assert streamed(rows) == computed
    (published,) = json.loads(path.read_text())
    if kind == "agent":
        published = {"agent_metrics": {key: value for key, value in published.items() if key != "agent_ref"}}
    wanted = {part: published.get(part) for part in PARTS if part in published or kind == "aggregate"}
    found = set(differences(wanted, {part: computed[part] for part in wanted}))
    reasons = OWN.get(path.parent.parent.name, ()) if kind == "aggregate" else ()
    assert list(unexplained(found, reasons)) == []
    assert unused(reasons, found) == []


@pytest.mark.skipif(not (SUITES and SUITES_PYTHON), reason="no ROLLBOOK_SUITES with a ROLLBOOK_SUITES_PYTHON")
@pytest.mark.parametrize("path", HOOKED_FILES, ids=lambda path: f"{path.parent.parent.name}/{path.stem}")
def test_a_servers_own_hooks_make_what_was_published_of_them(path):
    shelf, name = path.parts[-4:-2]
    computed = json.loads(hooked(f"{shelf}/{name}", b"\n".join(rows_beside(path, "aggregate"))))
    (published,) = json.loads(path.read_text())
    found = set(differences(*({part: metrics.get(part) for part in PARTS} for metrics in (published, computed))))
    reasons = HOOKED.get(name, ())
    assert list(unexplained(found, reasons)) == []
    assert unused(reasons, found) == []


def test_every_published_file_is_among_them():
    names = {path.parent.parent.name for path in FILES}
    assert OWN.keys() <= names
    assert len(FILES) >= 22

"""Whatever stands where evidence belongs, a record is examined."""

import json

from hypothesis import given
from hypothesis import strategies as st

from evidence_rows import ROW
from rollbook.health.examine import examine
from rollbook.health.tally import Tally

PATHS = [
    ("ng_trajectory",),
    ("ng_model_call_capture",),
    ("ng_agent_observations",),
    ("response",),
    ("response", "usage"),
    ("timeouts",),
    ("_ng_task_index",),
    ("_ng_rollout_index",),
    ("stage_index",),
    ("_ng_rollout_id",),
    ("failure_kind",),
    *[("ng_trajectory", name) for name in ROW["ng_trajectory"]],
    *[("ng_trajectory", "turns", 0, name) for name in ROW["ng_trajectory"]["turns"][0]],
    *[("ng_trajectory", "model_calls", 0, name) for name in ROW["ng_trajectory"]["model_calls"][0]],
    *[("ng_trajectory", "invocations", 0, name) for name in ROW["ng_trajectory"]["invocations"][0]],
    *[
        ("ng_trajectory", "model_calls", 0, "response_metadata", name)
        for name in ("status_code", "model_ref", "status")
    ],
    *[("ng_trajectory", "model_calls", 0, "response", name) for name in ("status", "output", "choices")],
    *[("ng_model_call_capture", "calls", 0, name) for name in ("started_at", "status_code", "tokens_in", "response")],
]
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -1, 0, 1 << 63, "c1", "", "length", "2026-01-01T00:00:00", "9999999-01"])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["calls", "gaps", "code", "type", "kind", "name", "model_call_id", "text", "usage", "x"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


def replaced(value, path, new):
    """Copy `value` with `new` at `path`; what is missing on the way is made."""
    if not path:
        return new
    head, *rest = path
    if isinstance(head, int):
        items = list(value or [{}])
        items[head] = replaced(items[head], rest, new)
        return items
    return (value or {}) | {head: replaced((value or {}).get(head), rest, new)}


@given(st.dictionaries(st.sampled_from(PATHS), ANYTHING, max_size=4))
def test_no_evidence_makes_a_check_raise(changes):
    record = ROW
    for path, new in sorted(changes.items(), key=lambda change: -len(change[0])):
        record = replaced(record, path, new)
    examined = examine(json.dumps(record).encode(), 0, Tally())
    assert "check_execution_error" not in {finding.check for finding in examined.findings}


@given(st.binary(max_size=60))
def test_no_line_makes_examining_it_raise(text):
    examine(text, 0, Tally())

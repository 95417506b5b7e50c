import pytest

from rollbook.inputs.examples import rows_of
from rollbook.plan.expand import Expansion
from rollbook.plan.options import PlanOptions
from rollbook.verbs.prepare import planned_rows

ROWS = [{"responses_create_params": {"input": text}, "agent_ref": {"name": "A"}} for text in "abc"]


@pytest.mark.parametrize(("interleave", "order"), [(False, "aabbcc"), (True, "abcabc")])
def test_repeats_are_adjacent_unless_they_are_interleaved(interleave, order):
    expansion = Expansion(PlanOptions(repeats=2))
    rows = planned_rows(rows_of(ROWS), expansion, resolve=iter, interleave=interleave)
    assert "".join(row["responses_create_params"]["input"] for row in rows) == order

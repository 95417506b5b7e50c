"""Results that keep no response: only the one that stands is of any account when answers are judged again."""

import pytest

from rollbook.errors import InputError
from rollbook.ledger.history import read_history
from rollbook.ledger.paths import RunPaths
from rollbook.records.identity import RolloutKey
from rollbook.verbs.reverify_answers import SavedResults
from saved_run import append, planned

ANSWER = {"output": [{"type": "message"}]}


@pytest.mark.parametrize("last", [None, ANSWER], ids=["without", "with"])
def test_a_result_without_a_response_is_refused_only_where_it_stands(tmp_path, last):
    paths = RunPaths(tmp_path / "r.jsonl")
    for response in (ANSWER, None, last):
        kept = {} if response is None else {"response": response}
        append(paths.output, planned(0, 0) | {"reward": 1.0} | kept)
    answers = SavedResults(paths, read_history(paths).standings)
    if last is None:
        with pytest.raises(InputError, match=r"r\.jsonl:3: .*no `response`"):
            answers.refuse_without_response(None)
    else:
        answers.refuse_without_response(None)
    answers.refuse_without_response(frozenset({RolloutKey(1, 0)}))

"""HumanEval's published file, in its own form and in damaged ones, and what its rows say of solutions."""

import gzip
import json

import pytest

from benchmarks.humaneval.prepare import prepare
from resources_servers.code_gen.grading import Allowance, graded
from resources_servers.code_gen.unit_tests import read_tests
from rollbook import InputError

LIMITS = Allowance(seconds=5, memory_mib=512)
HALVES = {
    "task_id": "HumanEval/900",
    "prompt": (
        "from typing import List\n\n\ndef bare(word: str) -> str:\n    return word.strip('.')\n\n\n"
        'def halves(words: List[str]) -> List[str]:\n    """Return the first half of each word.\n'
        "    >>> halves(['oars.'])\n    ['oa']\n    \"\"\"\n"
    ),
    "entry_point": "halves",
    "canonical_solution": "    return [bare(word)[: len(bare(word)) // 2] for word in words]\n",
    "test": (
        "\n\nMETADATA = {\n    'author': 'nobody',\n}\n\n\ndef check(candidate):\n"
        "    assert candidate(['oars.', 'at']) == ['oa', 'a']\n    assert candidate([]) == []\n\n"
    ),
}


@pytest.fixture
def prepared(tmp_path):
    def rows(*lines, name="HumanEval.jsonl.gz", ending="\n", cut=None):
        content = "".join(json.dumps(line) + ending for line in lines).encode()
        source = tmp_path / name
        source.write_bytes(gzip.compress(content)[:cut] if name.endswith(".gz") else content)
        path = prepare(tmp_path / "out" / "humaneval.jsonl", str(tmp_path), len(lines))
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    return rows


def test_the_packed_file_and_the_unpacked_one_make_the_same_rows(prepared, tmp_path):
    packed = prepared(HALVES)
    (tmp_path / "HumanEval.jsonl.gz").unlink()
    assert packed == prepared(HALVES, name="HumanEval.jsonl", ending="\r\n")
    assert (packed[0]["id"], packed[0]["prompt"]) == ("HumanEval/900", HALVES["prompt"].strip())


async def test_solutions_are_judged_by_the_published_tests(prepared):
    tests = read_tests(prepared(HALVES)[0]["verifier_metadata"])
    whole = "def halves(words: List[str]):\n    return [bare(word)[:len(bare(word)) // 2] for word in words]"
    verdicts = [
        await graded(code, tests, LIMITS)
        for code in (whole, HALVES["canonical_solution"], "def halves(words):\n    return words", "raise SystemExit(0)")
    ]
    assert [verdict.passed for verdict in verdicts] == [True, True, False, False]


def test_an_id_that_stands_twice_is_refused(prepared):
    with pytest.raises(InputError, match='rows 1 and 2 have the same id "HumanEval/900"'):
        prepared(HALVES, HALVES)


def test_lines_that_are_no_problems_are_told_by_file_and_line(prepared):
    with pytest.raises(InputError) as caught:
        prepared(HALVES, HALVES | {"entry_point": "thirds"}, HALVES | {"test": "assert halves([]) == []"})
    assert "HumanEval.jsonl:2: `prompt` defines no function of the name in `entry_point`, 'thirds'" in str(caught.value)
    assert "HumanEval.jsonl:3: `test` defines no function `check`" in str(caught.value)


def test_a_packed_file_that_is_cut_off_is_told_and_leaves_nothing(prepared, tmp_path):
    with pytest.raises(InputError, match=r"HumanEval\.jsonl\.gz: it cannot be unpacked: .*fetch it again"):
        prepared(HALVES, cut=-9)
    assert not [path for path in (tmp_path / "out").rglob("*") if path.is_file()]


def test_a_file_that_was_named_is_not_found_where_none_is(prepared, tmp_path):
    prepared(HALVES)
    assert [path.name for path in (tmp_path / "out").rglob("*")] == ["humaneval.jsonl"]

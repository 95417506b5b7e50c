import asyncio
import base64
import json
import zlib

import pytest

from resources_servers.code_gen.app import CodeGenResourcesServer, last_fenced
from resources_servers.code_gen.comparing import printed_fault, returned_fault
from resources_servers.code_gen.unit_tests import MOST_BYTES, UnreadableTestsError, read_tests
from unit.shelf.calling import built, example_rows, response, served

ROWS = example_rows("code_gen")
UNBOUNDED_S = 100
GOLD = [
    """
for letter, run in groupby(input()):
    print(letter, len(list(run)))
""",
    """
n, c = map(int, input().split())
left = trips = 0
for weight in map(int, input().split()):
    if weight > left:
        trips, left = trips + 1, c
    left -= weight
print(trips)
""",
    """
h, w = map(int, input().split())
water = {(i, j) for i in range(h) for j, what in enumerate(input()) if what == "~"}
lakes = 0
while water:
    lakes, edge = lakes + 1, [water.pop()]
    while edge:
        i, j = edge.pop()
        for near in ((i + 1, j), (i - 1, j), (i, j + 1), (i, j - 1)):
            if near in water:
                water.remove(near)
                edge.append(near)
print(lakes)
""",
    """
n = int(input())
print(sum(map(int, input().split())) / n)
""",
    """
class Solution:
    def longest_plateau(self, heights: List[int], slack: int) -> int:
        fits = [j - i for i in range(len(heights)) for j in range(i + 1, len(heights) + 1)
                if max(heights[i:j]) - min(heights[i:j]) <= slack]
        return max(fits, default=0)
""",
]


def fenced(code):
    return f"```python\n{code}\n```"


def server(**options):
    return built(CodeGenResourcesServer, **{"unit_test_timeout_secs": UNBOUNDED_S} | options)


def row(code, *tests, fn_name=None):
    inputs, outputs = [given for given, _ in tests], [expected for _, expected in tests]
    metadata = {"unit_tests": {"inputs": inputs, "outputs": outputs, "fn_name": fn_name}}
    return {**ROWS[0], "verifier_metadata": metadata, "response": response(fenced(code))}


def packed(content):
    return base64.b64encode(zlib.compress(content)).decode()


async def verified(row, **options):
    async with served(server(**options)) as session:
        return await session.ok("/verify", row)


@pytest.mark.parametrize(("row", "gold"), [*zip(ROWS, GOLD, strict=True)], ids=range(len(ROWS)))
async def test_a_right_program_earns_one_and_no_program_earns_nothing(row, gold):
    async with served(server()) as session:
        right = await session.ok("/verify", {**row, "response": response(fenced(gold))})
        assert (right["reward"], right["metadata"].get("error")) == (1.0, None)
        assert set(right["result"]) == {True}
        assert right["difficulty"] == row["verifier_metadata"]["difficulty"]
        silent = await session.ok("/verify", {**row, "response": response("I do not know.")})
        assert (silent["reward"], silent["extracted_model_code"], silent["result"]) == (0.0, None, None)


async def test_a_saved_result_earns_the_same_when_it_is_verified_again():
    async with served(server()) as session:
        once = await session.ok("/verify", row("print(2)", ("", "1")))
        again = await session.ok("/verify", once)
        assert {**again, "unit_tests_time_taken": 0} == {**once, "unit_tests_time_taken": 0}


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```python\n1\n``` and ```\n2\n```", "2"),
        ("```\n1\n2\n```", "1\n2"),
        ("```python\n1", None),
        ("`1`", None),
        ("```python 1```", None),
        ("```python\n\n```", None),
        ("```" * 1_000_000, None),
    ],
)
def test_the_program_is_the_last_fenced_block(text, code):
    assert last_fenced(text) == code


@pytest.mark.parametrize("tag", ["<think>", "</think>"])
async def test_a_response_that_shows_reasoning_tags_earns_nothing(tag):
    body = row("print(1)", ("", "1"))
    reply = await verified({**body, "response": response(f"{tag}{fenced('print(1)')}")})
    assert (reply["reward"], reply["result"], reply["reasoning_format_violation_rate"]) == (0.0, [True], 1.0)


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("1 2 \n\n", "1 2"),
        ("\n1", "1"),
        ("1  2", "1 2"),
        ("yes", "YES"),
        ("1.0", "1"),
        ("0.3333330", "0.3333335"),
        ("0.000001", "0"),
        ("1e5", "100000"),
        ("infinity", "inf"),
    ],
)
def test_printed_texts_agree_as_lines_verdicts_and_numbers(output, expected):
    assert printed_fault(output, expected) is None


@pytest.mark.parametrize(
    ("output", "expected", "fault"),
    [
        ("1\n2", "1", "Wrong answer: mismatched output length"),
        ("2", "1", "Wrong answer at output_line_idx=0: 2 != 1"),
        ("a  b", "a b", "Wrong answer at output_line_idx=0: a  b != a b"),
        ("True", "true", "Wrong answer at output_line_idx=0: True != true"),
        ("0.33333", "0.33334", "Wrong answer at output_line_idx=0: 0.33333 != 0.33334"),
        ("1000000000001", "1000000000002", "Wrong answer at output_line_idx=0: 1000000000001 != 1000000000002"),
        ("NaN", "nan", "Wrong answer at output_line_idx=0: NaN != nan"),
        ("sNaN", "1", "Wrong answer at output_line_idx=0: sNaN != 1"),
        ("1", "sNaN", "Wrong answer at output_line_idx=0: 1 != sNaN"),
        ("1e999999999999999999", "1", "Wrong answer at output_line_idx=0: 1e999999999999999999 != 1"),
        ("1 NaN123", "1 2", "Wrong answer at output_line_idx=0: 1 NaN123 != 1 2"),
        ("1", "", "Wrong answer at output_line_idx=0: 1 != "),
    ],
)
def test_printed_texts_that_differ_say_where(output, expected, fault):
    assert printed_fault(output, expected) == fault


@pytest.mark.parametrize(
    ("output", "expected", "agree"),
    [
        ("[1, 2]", "[1,2]", True),
        ("[0.30000000000000004]", "[0.3]", True),
        ("1.0", "1", True),
        ("true", "1", True),
        ("NaN", "NaN", True),
        ('"4"', "4", False),
        ('"yes"', '"YES"', False),
        ("1000000000000000001", "1000000000000000002", False),
        ("1" + "0" * 400, "1.5", False),
        ('{"a": 0.30000000000000004}', '{"a": 0.3}', False),
        ("[" * 5000, "[]", False),
        ("", "null", False),
    ],
)
def test_returned_values_agree_as_json(output, expected, agree):
    assert (returned_fault(output, expected) is None) == agree


@pytest.mark.parametrize(
    ("code", "code_said", "error"),
    [
        ("1 / 0", -4, "ZeroDivisionError('division by zero')"),
        ("def (", -4, "SyntaxError"),
        ("print(2)", -2, None),
        ("import os; os._exit(9)", -4, "the solution ended with code 9"),
        ("import ctypes; ctypes.string_at(0)", -4, "the solution ended with code -11"),
        ("import os; os.kill(os.getppid(), 9)", -4, "the program ended with code 137"),
        ("bytearray(10 ** 11)", -4, "MemoryError()"),
        ("def f(): return f()\nf()", -4, "RecursionError"),
        ("while True: print('x' * 1000_000)", -4, "OSError(27"),
        ("(" * 100_000, -4, "SyntaxError"),
    ],
)
async def test_a_program_that_fails_says_how(code, code_said, error):
    reply = await verified(row(code, ("", "1"), ("", "1")))
    assert (reply["reward"], reply["result"]) == (0.0, [code_said])
    assert str(reply["metadata"].get("error")).startswith(str(error))


@pytest.mark.parametrize(
    "code", ["while True: pass", "import os, signal; os.kill(os.getppid(), signal.SIGSTOP)\nwhile True: pass"]
)
async def test_a_program_without_end_is_ended(code, monkeypatch):
    monkeypatch.setattr("resources_servers.code_gen.grading.GRACE_S", 0.5)
    reply = await verified(row(code, ("", "1")), unit_test_timeout_secs=0.3)
    assert (reply["reward"], reply["result"]) == (0.0, [-3])
    assert reply["metadata"]["error_message"] == "Time Limit Exceeded"


async def test_a_fork_bomb_is_ended_and_touches_no_other_program():
    async with served(server(unit_test_timeout_secs=0.5)) as one, served(server()) as other:
        bomb = one.ok("/verify", row("import os\nwhile True: os.fork()", ("", "1")))
        harmless = other.ok("/verify", row("print(input())", *[("1", "1")] * 3))
        bombed, reply = await asyncio.gather(bomb, harmless)
        assert (bombed["reward"], reply["reward"]) == (0.0, 1.0)


async def test_a_test_finds_nothing_of_the_one_before_it():
    code = "import builtins\nprint(hasattr(builtins, 'x'))\nbuiltins.x = 1"
    assert (await verified(row(code, ("", "False"), ("", "False"))))["reward"] == 1.0


@pytest.mark.parametrize(
    "code",
    [
        "print(sys.stdin.readline())",
        "print(sys.stdin.buffer.read().decode())",
        "print(open(0).read())",
        "if __name__ == '__main__':\n    print(input())\n    sys.exit(1)",
        "import threading\nthreading.Thread(target=lambda: print(input())).start()",
    ],
)
async def test_a_program_reads_and_prints_in_any_usual_way(code):
    assert (await verified(row(code, ("1\n", "1"))))["reward"] == 1.0


@pytest.mark.parametrize(
    ("code", "result"),
    [
        ("class Solution:\n    def f(self, a, b):\n        print('seen'); return (a, b)", [True, True]),
        ("def f(a, b): return [a, b]", [True, True]),
        ("def f(a, b): return [a, 2]", [True, False]),
        ("def g(a, b): return [a, b]", [-4]),
    ],
)
async def test_a_function_is_called_with_its_arguments(code, result):
    reply = await verified(row(code, ("1\n2", "[1, 2]"), ('1\n"x"', '[1, "x"]'), fn_name="f"))
    assert (reply["result"], reply["reward"]) == (result, float(all(each is True for each in result)))


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"unit_tests": []},
        {"unit_tests": {"inputs": [], "outputs": []}},
        {"unit_tests": {"inputs": ["1", "2"], "outputs": ["1"]}},
        {"unit_tests": {"inputs": [1], "outputs": ["1"]}},
        {"unit_tests": {"packed": "!!!"}},
        {"unit_tests": {"packed": packed(b"no json")}},
        {"unit_tests": {"packed": packed(b"[" * 100_000)}},
        {"unit_tests": {"packed": packed(b"{}")[:-8]}},
        {"unit_tests": {"packed": packed(b" " * (MOST_BYTES + 1))}},
    ],
)
async def test_a_row_whose_tests_cannot_be_read_is_masked_with_the_reason(metadata):
    body = {**ROWS[0], "verifier_metadata": metadata, "response": response("x")}
    reply = await verified(body)
    assert (reply["reward"], reply["mask_sample"], reply["failure_kind"]) == (0.0, True, "verifier_error")
    assert reply["failure_reason"]


@pytest.mark.parametrize("expected", ["no json", "[" * 100_000])
async def test_a_row_whose_expected_value_is_no_json_is_masked(expected):
    reply = await verified(row("def f(a): return a", ("1", expected), fn_name="f"))
    assert (reply["reward"], reply["mask_sample"]) == (0.0, True)


def test_packed_tests_are_those_that_were_packed():
    tests = {"inputs": ["1"], "outputs": ["2"], "fn_name": "f", "before": "import math\n", "after": "\n"}
    content = json.dumps(tests).encode()
    assert read_tests({"unit_tests": {"packed": packed(content)}}).model_dump() == tests
    with pytest.raises(UnreadableTestsError, match="cut off"):
        read_tests({"unit_tests": {"packed": base64.b64encode(zlib.compress(content)[:-2]).decode()}})


async def test_nothing_is_left_of_a_program(tmp_path):
    body = row("open('left', 'w').write('x')\nprint(1)", ("", "1"))
    assert (await verified(body, sandbox={"local": {"workspace_root": str(tmp_path)}}))["reward"] == 1.0
    assert [*tmp_path.iterdir()] == []

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import pytest

from resources_servers.math_with_code.answers import equal, found_answer
from resources_servers.math_with_code.app import MathWithCodeResourcesServer
from resources_servers.math_with_code.confine import landlock_version
from rollbook import NeMoGymResponse
from unit.shelf.calling import built, example_rows, response, served

ROWS = example_rows("math_with_code")
UNBOUNDED_S = 100


def server(**options):
    return built(MathWithCodeResourcesServer, **{"max_execution_time": UNBOUNDED_S} | options)


@asynccontextmanager
async def calling(tested=None, **options):
    """Serve inside the block; every Python is ended before the server, which has a second for it."""
    tested = tested or server(**options)
    async with served(tested) as session:
        try:
            yield session
        finally:
            await tested.sessions.close()


async def ran(session, code):
    return await session.ok("/execute_python", {"code": code})


def shown(stdout):
    return {"type": "function_call_output", "call_id": "call_1", "output": json.dumps({"stdout": stdout})}


def found(*output):
    return found_answer(NeMoGymResponse.model_validate(response(*output)))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
async def test_the_expected_answer_earns_one_and_no_answer_earns_nothing(row):
    async with calling() as session:
        right = await session.ok("/verify", {**row, "response": response(f"\\boxed{{{row['expected_result']}}}")})
        assert (right["reward"], right["accuracy"]) == (1.0, True)
        silent = await session.ok("/verify", {**row, "response": response("I do not know.")})
        assert (silent["reward"], silent["extracted_answer"]) == (0.0, None)


async def test_a_saved_result_earns_the_same_when_it_is_verified_again():
    async with calling() as session:
        once = await session.ok("/verify", {**ROWS[0], "response": response("\\boxed{338}")})
        assert await session.ok("/verify", once) == once


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        (["\\boxed{3} or \\boxed{5}"], "5"),
        (["\\boxed{\\frac{1}{2}}"], "\\frac{1}{2}"),
        (["\\boxed{5}", "Done."], "5"),
        (["\\boxed{4}", shown("\\boxed{5}")], "4"),
        (["Done.", shown("\\boxed{5}")], "5"),
        ([shown("\\boxed{5}"), shown("nothing")], "5"),
        (["\\boxed{}"], None),
        (["\\boxed{5"], None),
        ([shown("5")], None),
        ([{**shown(""), "output": "\\boxed{5}"}], "5"),
        ([{**shown(""), "output": "[" * 100_000}], None),
    ],
)
def test_the_answer_is_in_the_last_filled_box_of_the_messages_or_else_of_the_tools(output, answer):
    assert found(*output) == answer


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("5", "\\(5\\)"),
        ("$5$", "5"),
        ("\\text{yes}", "yes"),
        ("5.0000001", "5"),
        ("1000", "1e3"),
        (".1", "0.1"),
        ("\N{FULLWIDTH DIGIT ONE}", "1"),
    ],
)
def test_answers_are_equal_without_markup_and_as_numbers(answer, expected):
    assert equal(answer, expected)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("5.1", "5"),
        ("1,000", "1000"),
        ("a", "A"),
        ("NaN", "nan"),
        ("Infinity", "inf"),
        ("x+1", "x + 1"),
        ("9" * 500, "8" * 500),
        ("\N{MINUS SIGN}5", "-5"),
    ],
)
def test_answers_that_look_alike_are_not_equal(answer, expected):
    assert not equal(answer, expected)


async def test_an_answer_of_five_megabytes_is_wrong_and_not_an_error():
    async with calling() as session:
        reply = await session.ok("/verify", {**ROWS[0], "response": response("\\boxed{" * 1000 + "x" * 5_000_000)})
        assert reply["reward"] == 0.0


async def test_python_keeps_variables_and_tells_what_code_did():
    async with calling(max_output_chars=10) as session:
        assert await ran(session, "x = 20\nprint(x)\nx + 1") == {
            "success": True,
            "stdout": "20\n",
            "stderr": "",
            "error_message": None,
            "result": "21",
        }
        assert (await ran(session, "x"))["result"] == "20"
        assert (await ran(session, "import sys; print('no', file=sys.stderr)"))["stderr"] == "no\n"
        assert (await ran(session, "1 / 0"))["error_message"] == "ZeroDivisi\n[... 25 characters left out ...]"
        assert (await ran(session, "exit(3)"))["error_message"] == "SystemExit"[
            :10
        ] + "\n[... 3 characters left out ...]"
        assert (await ran(session, "print('a' * 30)"))["stdout"] == "a" * 10 + "\n[... 21 characters left out ...]"
        assert (await ran(session, "print('\\ud800')"))["stdout"] == "?\n"
        assert (await ran(session, "def ("))["success"] is False
        assert (await ran(session, "import os; os.fork(); x"))["result"] == "20"
        assert (await ran(session, "x" * 1_000_001))["success"] is False
        assert (await ran(session, "bytearray(10 ** 11)"))["error_message"].startswith("MemoryErro")
        assert (await ran(session, "x"))["result"] == "20"


async def test_a_session_sees_nothing_of_another_and_begins_anew_after_its_end():
    async with calling() as one:
        other = one.newcomer()
        await ran(one, "x = 1")
        await ran(other, "x = 2")
        assert [(await ran(session, "x"))["result"] for session in (one, other)] == ["1", "2"]
        assert (await one.ok("/end_session", {}))["success"] is True
        assert (await ran(one, "x"))["error_message"] == "NameError: name 'x' is not defined"
        assert (await ran(other, "x"))["result"] == "2"


async def test_code_without_end_ends_its_python_and_says_so_and_the_session_goes_on():
    async with calling(max_execution_time=0.3) as session:
        endless = await ran(session, "while True: pass")
        assert endless["error_message"] == (
            "code timed-out: no end within 0.3 s; the session starts anew without its variables"
        )
    async with calling() as session:
        died = await ran(session, "import os; os.kill(os.getpid(), 9)")
        assert died["error_message"].startswith("the program ended with code 137;")
        assert (await ran(session, "1 + 1"))["result"] == "2"


async def test_a_fork_bomb_is_ended_and_touches_no_other_session():
    forking = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass"
    async with calling(max_execution_time=0.5) as session, calling() as neighbour:
        await ran(neighbour, "x = 1")
        bomb, harmless = await asyncio.gather(ran(session, forking), ran(neighbour, "x + 1"))
        assert bomb["success"] is False
        assert harmless["result"] == "2"


async def test_a_python_that_talks_to_the_server_by_itself_spoils_its_own_session_alone():
    forging = "import os\nfor number in range(3, 20):\n    try: os.write(number, b'{}\\n')\n    except OSError: pass"
    async with calling() as session:
        neighbour = session.newcomer()
        await ran(neighbour, "x = 1")
        assert (await ran(session, forging))["success"] is False
        assert (await ran(neighbour, "x"))["result"] == "1"


async def test_verifying_ends_the_python_of_the_session_and_leaves_no_directory(tmp_path):
    tested = server(sandbox={"local": {"workspace_root": str(tmp_path)}})
    async with calling(tested) as session:
        await ran(session, "x = 1")
        assert [*tmp_path.iterdir()] != []
        await session.ok("/verify", {**ROWS[0], "response": response("5")})
        assert [*tmp_path.iterdir()] == []
        assert len(tested.sessions) == 0


async def test_sessions_are_bounded_and_one_that_lost_its_python_is_told():
    async with calling(max_sessions=1) as one:
        other = one.newcomer()
        await ran(one, "x = 1")
        await ran(other, "x = 2")
        again = await ran(one, "print('x' in globals())")
        assert again["stdout"] == "False\n"
        assert "variables are gone" in again["stderr"]


async def test_no_session_is_made_while_all_others_run_code():
    sessions = server(max_sessions=1).sessions
    running = asyncio.create_task(sessions.run("one", "1"))
    await asyncio.sleep(0)
    assert (await sessions.run("other", "1")).error_message == "all 1 sessions are running code; try again later"
    assert (await running).result == "1"
    await sessions.close()


@pytest.mark.skipif(not landlock_version(), reason="the kernel has no Landlock")
async def test_where_the_kernel_has_landlock_code_reaches_no_files_but_its_own_and_those_of_python(tmp_path):
    async with calling() as session:
        for code in ["open('/etc/passwd')", f"open({str(tmp_path / 'x')!r}, 'w')", "import os; os.listdir('/')"]:
            assert (await ran(session, code))["error_message"].startswith("PermissionError"), code
        assert (await ran(session, "open('own', 'w').write('x')"))["result"] == "1"
        assert (await ran(session, f"import os; os.path.exists({sys.executable!r})"))["result"] == "True"

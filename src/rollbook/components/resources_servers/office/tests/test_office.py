import asyncio
import json

import pytest

from resources_servers.office.app import OfficeResourcesServer, tool_definitions
from resources_servers.office.records import opened
from resources_servers.office.tools import TOOLS
from resources_servers.office.verifying import after, differences, done
from unit.shelf.calling import built, example_rows, response, served, tool_call

ROWS = example_rows("office")
RUTH, HANNA = "ruth@tern.example", "hanna@tern.example"


def gold(row):
    return [tool_call(call["name"], **call["arguments"]) for call in row["expected_calls"]]


def row(*calls, **fields):
    return {**ROWS[0], "expected_calls": [{"name": name, "arguments": given} for name, given in calls], **fields}


async def verified(row, *output):
    async with served(built(OfficeResourcesServer)) as server:
        return await server.ok("/verify", {**row, "response": response(*output)})


def answer(name, office=None, **arguments):
    return done(office or opened(), name, arguments)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
async def test_the_expected_calls_do_what_a_row_asks_and_doing_nothing_does_not(row):
    assert (await verified(row, *gold(row), "Done."))["reward"] == 1.0
    assert (await verified(row, "Done."))["reward"] == float(not row["expected_calls"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
async def test_one_change_too_many_earns_nothing(row):
    reply = await verified(row, *gold(row), tool_call("add_customer_note", customer_id="c-008", note="Hm."))
    assert reply["reward"] == 0.0
    assert all("c-008" in line for line in reply["differences"])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_a_row_offers_the_tools_that_there_are(row):
    assert row["responses_create_params"]["tools"] == tool_definitions()


async def test_the_tools_answer_over_http_as_they_do_when_verified():
    office = opened()
    async with served(built(OfficeResourcesServer)) as session:
        assert await session.ok("/seed_session", ROWS[0]) == {}
        for example in ROWS:
            for call in example["expected_calls"]:
                expected = done(office, call["name"], call["arguments"])
                assert await session.ok(f"/{call['name']}", call["arguments"]) == expected


async def test_sessions_side_by_side_have_offices_of_their_own():
    async with served(built(OfficeResourcesServer)) as server:
        sessions = [server.newcomer() for _ in range(4)]
        await asyncio.gather(*(session.ok("/seed_session", ROWS[0]) for session in sessions))
        new = {"path": "notes/mine.txt"}
        answers = [
            await session.ok("/write_file", {**new, "text": str(place)}) for place, session in enumerate(sessions)
        ]
        texts = [(await session.ok("/read_file", new))["text"] for session in sessions]
    assert [answer["new"] for answer in answers] == [True] * 4
    assert texts == ["0", "1", "2", "3"]


async def test_a_seed_and_a_verification_begin_anew():
    async with served(built(OfficeResourcesServer)) as session:
        for again in ("/seed_session", "/verify"):
            await session.ok("/delete_file", {"path": "notes/packing-list.txt"})
            await session.ok(again, {**ROWS[0], "response": response("x")})
            assert (await session.ok("/read_file", {"path": "notes/packing-list.txt"}))["path"]


async def test_of_sessions_that_nobody_verifies_the_last_are_kept(monkeypatch):
    monkeypatch.setattr("resources_servers.office.app.MOST_OFFICES", 2)
    server = built(OfficeResourcesServer)
    async with served(server) as caller:
        for _ in range(5):
            await caller.newcomer().ok("/seed_session", ROWS[0])
    assert len(server.offices) == 2


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("read_mail", {"mail_id": "m-999"}, "there is no mail 'm-999'"),
        ("send_mail", {"to": ["ruth"], "subject": "", "body": ""}, "'ruth' is no address"),
        ("send_mail", {"to": [], "subject": "", "body": ""}, "to: List should have at least 1 item"),
        ("move_mail", {"mail_id": "m-001", "folder": "attic"}, "folder: Input should be"),
        ("create_event", {"title": "x", "start": "tomorrow", "duration": 1, "attendees": []}, "'tomorrow' is no time"),
        ("create_event", {"title": "x", "start": "2025-03-10 09:00", "duration": 0, "attendees": []}, "duration: "),
        ("cancel_event", {"event_id": "e-002", "why": "x"}, "why: Extra inputs are not permitted"),
        ("move_file", {"path": "prices/2024.txt", "target": "contracts/ferry.txt"}, "already"),
        ("write_file", {"path": "../x", "text": ""}, "'../x' is no path"),
        ("add_customer", {"name": "x", "email": "INFO@solentsails.example", "city": "x"}, "is there already"),
        ("change_customer", {"customer_id": "c-001", "field": "status", "value": "loud"}, "status: Input should be"),
        ("change_customer", {"customer_id": "c-001", "field": "notes", "value": "x"}, "field: Input should be"),
        ("fly", {}, "there is no tool 'fly'"),
    ],
)
def test_what_cannot_be_done_is_said_and_changes_nothing(name, arguments, said):
    office = opened()
    assert said in done(office, name, arguments)["error"]
    assert office == opened()


@pytest.mark.parametrize(
    ("name", "arguments", "ids"),
    [
        ("search_mail", {"words": "WINCH blue"}, []),
        ("search_mail", {"words": "winch", "folder": "inbox"}, ["m-014", "m-004"]),
        ("search_mail", {"sender": "harbourweekly"}, ["m-012", "m-006"]),
        ("search_events", {"day": "2025-03-12", "attendee": "INES"}, ["e-005", "e-006"]),
        ("search_events", {"words": "meeting"}, ["e-001", "e-011"]),
        ("search_customers", {"city": "leith", "status": "lead"}, ["c-004", "c-012"]),
    ],
)
def test_a_search_finds_what_fits_in_order(name, arguments, ids):
    found = answer(name, **arguments)
    kind = next(iter(found))
    assert [next(iter(entry.values())) for entry in found[kind]] == ids
    assert found["found"] == len(ids)


@pytest.mark.parametrize(
    ("day", "minutes", "people", "start"),
    [
        ("2025-03-12", 30, ["ruth", "ines", "lucy"], "2025-03-12 09:00"),
        ("2025-03-12", 45, ["ruth", "ines"], "2025-03-12 12:00"),
        ("2025-03-12", 180, ["ruth"], None),
        ("2025-03-15", 480, ["ruth"], "2025-03-15 09:00"),
        ("2025-03-10", 30, ["HANNA"], "2025-03-10 10:00"),
    ],
)
def test_free_time_is_the_first_that_suits_all(day, minutes, people, start):
    people = [f"{person}@tern.example" for person in people]
    assert answer("find_free_time", day=day, duration=minutes, attendees=people) == {"start": start}


def test_a_reply_goes_to_the_sender_under_the_subject_and_a_forward_carries_the_text():
    office = opened()
    replied = done(office, "reply_to_mail", {"mail_id": "m-014", "body": "Soon."})["mail_id"]
    forwarded = done(office, "forward_mail", {"mail_id": "m-014", "to": [HANNA]})["mail_id"]
    assert (office.mails[replied].to, office.mails[replied].subject) == (
        ["maria.sol@bluequay.example"],
        "Re: Broken winch",
    )
    assert (office.mails[forwarded].subject, office.mails[forwarded].body) == (
        "Fwd: Re: Broken winch",
        office.mails["m-014"].body,
    )


def test_offices_are_alike_whatever_the_order_the_ids_and_the_spelling_of_what_is_new():
    first = {"to": [RUTH, HANNA], "subject": "Hello", "body": "One  two"}
    second = {"to": [HANNA], "subject": "Bye", "body": "x"}
    swapped = {"to": [HANNA.upper(), RUTH], "subject": "HELLO", "body": " one two"}
    one = after([("send_mail", first), ("send_mail", second)])
    other = after([("send_mail", second), ("send_mail", swapped)])
    assert differences(one, other) == []


@pytest.mark.parametrize(
    "change",
    [
        ("send_mail", {"to": [HANNA], "subject": "a", "body": "another"}),
        ("send_mail", {"to": [RUTH], "subject": "a", "body": "b"}),
        ("move_mail", {"mail_id": "m-001", "folder": "bin"}),
        ("write_file", {"path": "a.txt", "text": "b"}),
        ("change_event", {"event_id": "e-001", "duration": 61}),
    ],
)
def test_every_change_is_a_difference_told_from_both_sides(change):
    expected = after([("send_mail", {"to": [HANNA], "subject": "a", "body": "b"})])
    lines = differences(after([change]), expected)
    assert any(": missing: " in line for line in lines)
    assert any(": not expected: " in line for line in lines)


def test_a_free_field_may_say_anything_but_not_nothing():
    said = [after([("reply_to_mail", {"mail_id": "m-007", "body": body})]) for body in ("Yes!", "Come.", "")]
    free = frozenset({"mails.body"})
    assert differences(said[0], said[1], free) == []
    assert differences(said[0], said[1]) != []
    assert differences(said[2], said[1], free) != []


@pytest.mark.parametrize("arguments", ["{", "[]", "null", "[" * 100_000, '{"path": ' + "9" * 5_000 + "}"])
async def test_a_call_that_cannot_be_read_does_nothing(arguments):
    call = {"type": "function_call", "call_id": "c", "name": "delete_file", "arguments": arguments}
    assert (await verified(row(), call))["reward"] == 1.0


async def test_a_row_whose_expected_calls_fail_is_masked():
    reply = await verified(row(("read_mail", {"mail_id": "m-999"})), "x")
    assert (reply["reward"], reply["mask_sample"], reply["failure_kind"]) == (0.0, True, "verifier_error")
    assert reply["failure_reason"].startswith("expected_calls: read_mail: there is no mail 'm-999'")


async def test_five_thousand_calls_are_judged_and_megabytes_are_text():
    notes = [tool_call("write_file", f"c{n}", path=f"n/{n % 50}.txt", text=str(n)) for n in range(5_000)]
    large = tool_call("send_mail", to=[RUTH], subject="x", body="y" * 1_000_000)
    reply = await verified(row(), *notes, large)
    assert (reply["reward"], len(reply["differences"])) == (0.0, 20)
    assert len(json.dumps(reply["differences"])) < 100_000


async def test_a_saved_result_can_be_verified_again():
    assert (await verified(await verified(ROWS[0], "no"), *gold(ROWS[0])))["reward"] == 1.0


def test_every_tool_says_what_it_is_for():
    assert all(tool.arguments.__doc__ and tool.act.__doc__ for tool in TOOLS.values())

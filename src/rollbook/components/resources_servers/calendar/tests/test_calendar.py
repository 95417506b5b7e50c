import json

import pytest

from resources_servers.calendar.app import CalendarResourcesServer
from resources_servers.calendar.schedule import first_list
from resources_servers.calendar.times import minutes
from unit.shelf.calling import built, example_rows, response, served, shared_rows

NAME = "calendar"
ROW = example_rows(NAME)[0]
HOUR = 60


def event(start="10:00", duration=HOUR, name=0, **more):
    return {"event_id": name, "event_name": "x", "start_time": start, "duration": duration} | more


def wanting(*constraints, window=("10:00", "16:00")):
    earliest, latest = window
    return {
        str(name): {"duration": HOUR, "constraint": asked, "min_time": earliest, "max_time": latest}
        for name, asked in enumerate(constraints)
    }


async def verified(text, expected, row=ROW):
    said = text if isinstance(text, str) else json.dumps(text)
    async with served(built(CalendarResourcesServer)) as server:
        return await server.ok("/verify", {**row, "exp_cal_state": expected, "response": response(said)})


async def worth(text, expected):
    return (await verified(text, expected))["reward"]


def solved(expected):
    """Return a calendar that fits, tried quarter by quarter."""
    placed = []

    def place(left, taken):
        if not left:
            return True
        name, wanted = left[0]
        for start in range(minutes(wanted["min_time"]), minutes(wanted["max_time"]), 5):
            end = start + wanted["duration"]
            if all(end <= first or last <= start for first, last in taken) and fits(wanted, start, end):
                placed.append(event(f"{start // HOUR:02}:{start % HOUR:02}", wanted["duration"], int(name)))
                if place(left[1:], [*taken, (start, end)]):
                    return True
                placed.pop()
        return False

    assert place(sorted(expected.items(), key=lambda item: not str(item[1]["constraint"]).startswith("at")), [])
    return placed


def fits(wanted, start, end):
    words = (wanted["constraint"] or "").split()
    times = [minutes(word) for word in words[1::2]]
    rules = {"before": lambda t: end <= t, "after": lambda t: start >= t, "at": lambda t: start == t}
    inside = end <= minutes(wanted["max_time"])
    if not words:
        return inside
    if words[0] == "between":
        return inside and times[0] <= start and end <= times[1]
    return inside and rules[words[0]](times[0])


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_a_calendar_that_fits_is_worth_one_and_one_without_its_last_event_nothing(read):
    for row in read(NAME):
        expected = row["exp_cal_state"]
        calendar = solved(expected)
        assert (await verified(f"Here it is: {json.dumps(calendar)}.", expected, row))["reward"] == 1.0
        if expected:
            assert (await verified(calendar[:-1], expected, row))["reward"] == 0.0


@pytest.mark.parametrize(
    ("constraint", "right", "wrong"),
    [
        (None, "10:00", "09:59"),
        (None, "15:00", "15:01"),
        ("before 11:45am", "10:45", "10:46"),
        ("BEFORE 2 PM", "13:00", "13:01"),
        ("after 2pm", "14:00", "13:59"),
        ("between 12:15pm and 3:15pm", "14:15", "14:16"),
        ("between 12:15pm and 3:15pm", "12:15", "12:14"),
        ("at 12pm", "12:00", "12:01"),
        ("at 14:00", "2pm", "2am"),
    ],
)
async def test_an_event_lies_inside_its_window_and_its_constraint(constraint, right, wrong):
    assert await worth([event(right)], wanting(constraint)) == 1.0
    assert await worth([event(wrong)], wanting(constraint)) == 0.0


@pytest.mark.parametrize(
    "calendar",
    [
        [event(), event("10:59", name=1)],
        [event("10:59", name=1), event()],
        [event()],
        [event(), event("11:00", name=2)],
        [event(), event("11:00", 30, 1)],
        [event(), event("11:00", "60", 1)],
        [event(), event("11:00 AM", name=1)],
        [event(), event(1100, name=1)],
        [event(), event("25:00", name=1)],
        [event(), {"event_id": 1, "start_time": "11:00"}],
        [],
        [{}],
        "no calendar today",
        "",
        "[" * 100_000,
        "[{" * 100_000,
        '[{"event_id": ' + "9" * 5_000 + "}]",
    ],
)
async def test_a_calendar_that_is_not_the_expected_one_is_worth_nothing(calendar):
    assert await worth(calendar, wanting(None, None)) == 0.0


async def test_events_that_touch_do_not_overlap_and_ids_may_be_texts():
    assert await worth([event("11:00", name="1"), event(name="0")], wanting(None, None)) == 1.0


async def test_a_reply_that_shows_its_thoughts_is_worth_nothing():
    assert await worth("<think>hm</think>" + json.dumps([event()]), wanting(None)) == 0.0


@pytest.mark.parametrize(("text", "reward"), [("Bore da!", 1.0), ("", 0.0)])
async def test_a_row_without_events_asks_for_words_alone(text, reward):
    assert await worth(text, {}) == reward


async def test_only_the_last_item_is_read():
    async with served(built(CalendarResourcesServer)) as server:
        output = [json.dumps([event()]), "Done."]
        body = {**ROW, "exp_cal_state": wanting(None), "response": response(*output)}
        assert (await server.ok("/verify", body))["reward"] == 0.0


@pytest.mark.parametrize("constraint", ["around noon", "after noon", "between 1pm", "at 13pm", "before 1pm and 2pm"])
async def test_a_row_whose_constraint_cannot_be_read_is_masked(constraint):
    reply = await verified([event()], wanting(constraint))
    assert (reply["reward"], reply["mask_sample"], reply["failure_kind"]) == (0.0, True, "verifier_error")
    assert reply["failure_reason"].startswith("exp_cal_state: ")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('[1] [{"a": 1}]', [{"a": 1}]),
        ('{"calendar": [{"a": "[b] ]"}]}', [{"a": "[b] ]"}]),
        ('[{"a": 1}, 2] [{"b": 1}]', [{"b": 1}]),
        ('[{"a": 1},] [{"b": 1}]', [{"b": 1}]),
        ("[{'a': 1}]", []),
    ],
)
def test_the_first_list_of_objects_is_the_calendar(text, names):
    assert first_list(text) == names

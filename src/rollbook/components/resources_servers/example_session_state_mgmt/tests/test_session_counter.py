import asyncio

import pytest

from resources_servers.example_session_state_mgmt.app import StatefulCounterResourcesServer
from rollbook.testing.session_conformance import check_resources_session_contract
from unit.shelf.calling import built, example_rows, response, served, shared_rows

NAME = "example_session_state_mgmt"
ROW = example_rows(NAME)[0]
EPISODE = {"rollout_id": "0-0", "attempt": 0}


def typed(name="s1", start=5, rollout="0-0"):
    return {
        "resources_session_id": name,
        "episode_id": {"rollout_id": rollout, "attempt": 0},
        "task_id": {"taskset": "counter", "task_id": "0"},
        "task_data": {"initial_count": start, "expected_count": 8},
    }


def answered(row, **fields):
    return {**row, "response": response("done"), **fields}


async def count_of(session):
    return (await session.ok("/get_counter_value", {}))["count"]


@pytest.mark.parametrize(
    ("added", "reward"), [([3], 1.0), ([1, 2], 1.0), ([-2, 5], 1.0), ([], 0.0), ([2], 0.0), ([4], 0.0)]
)
async def test_only_the_expected_number_is_worth_one(added, reward):
    async with served(built(StatefulCounterResourcesServer)) as session:
        await session.ok("/seed_session", {**ROW, "initial_count": 5})
        for count in added:
            assert await session.ok("/increment_counter", {"count": count}) == {"success": True}
        assert await count_of(session) == 5 + sum(added)
        assert (await session.ok("/verify", answered(ROW, expected_count=8)))["reward"] == reward


@pytest.mark.parametrize("read", [example_rows, shared_rows])
async def test_adding_what_a_row_is_short_of_earns_its_reward(read):
    async with served(built(StatefulCounterResourcesServer)) as session:
        for row in read(NAME):
            assert await session.ok("/seed_session", row) == {}
            await session.ok("/increment_counter", {"count": row["expected_count"] - row["initial_count"]})
            reply = await session.ok("/verify", answered(row))
            assert (reply["reward"], reply["mask_sample"], reply["expected_count"]) == (
                1.0,
                False,
                row["expected_count"],
            )


async def test_sessions_that_run_side_by_side_do_not_mix():
    async with served(built(StatefulCounterResourcesServer)) as server:
        sessions = [server.newcomer() for _ in range(8)]
        for start, session in enumerate(sessions):
            await session.ok("/seed_session", {**ROW, "initial_count": 100 * start})
        for _ in range(3):
            await asyncio.gather(
                *(session.ok("/increment_counter", {"count": step}) for step, session in enumerate(sessions))
            )
        counts = await asyncio.gather(*(count_of(session) for session in sessions))
    assert counts == [103 * number for number in range(8)]


async def test_a_new_seed_starts_the_cookies_counter_anew():
    async with served(built(StatefulCounterResourcesServer)) as session:
        await session.ok("/seed_session", {**ROW, "initial_count": 5})
        await session.ok("/increment_counter", {"count": 3})
        await session.ok("/seed_session", {**ROW, "initial_count": 9})
        assert await count_of(session) == 9


async def test_a_counter_starts_at_nothing_where_nobody_says_otherwise():
    async with served(built(StatefulCounterResourcesServer)) as server:
        assert await count_of(server.newcomer()) == 0
        seeded = server.newcomer()
        await seeded.ok("/seed_session", {"responses_create_params": ROW["responses_create_params"]})
        assert await count_of(seeded) == 0


async def test_verifying_ends_the_count_and_leaves_nothing_behind():
    server = built(StatefulCounterResourcesServer)
    async with served(server) as session:
        await session.ok("/seed_session", ROW)
        await session.ok("/verify", answered(ROW))
        assert server.session_id_to_counter == {}
        again = await session.ok("/verify", answered(ROW))
    assert (again["reward"], again["mask_sample"], again["failure_kind"]) == (0.0, True, "session_lost")
    assert "/seed_session" in again["failure_reason"]


@pytest.mark.parametrize("arguments", [{}, {"count": "many"}, {"count": 1.5}])
async def test_what_is_no_whole_number_is_not_added(arguments):
    async with served(built(StatefulCounterResourcesServer)) as session:
        await session.ok("/seed_session", {**ROW, "initial_count": 5})
        assert (await session.post("/increment_counter", arguments)).status == 422
        assert await count_of(session) == 5


async def test_saved_responses_cannot_be_verified_again():
    async with served(built(StatefulCounterResourcesServer)) as session:
        assert (await session.get("/reverify_mode")).json() == "unsupported"


async def test_a_typed_session_counts_for_whoever_seeded_it():
    server = built(StatefulCounterResourcesServer)
    async with served(server) as session:
        assert (await session.ok("/seed_session", typed(start=5)))["resources_session_id"] == "s1"
        await session.ok("/increment_counter", {"count": 3})
        assert (await session.ok("/verify", answered(ROW, expected_count=8)))["reward"] == 1.0
        await session.ok("/close_session", {"resources_session_id": "s1", "episode_id": EPISODE})
        assert server.session_id_to_counter == {}


async def test_a_typed_seed_that_comes_again_keeps_the_count_whatever_its_cookie():
    async with served(built(StatefulCounterResourcesServer)) as server:
        await server.ok("/seed_session", typed(start=5))
        await server.ok("/increment_counter", {"count": 3})
        other = server.newcomer()
        await other.ok("/seed_session", typed(start=5))
        assert await count_of(other) == 8


async def test_sessions_that_follow_each_other_behind_one_cookie_do_not_mix():
    server = built(StatefulCounterResourcesServer)
    async with served(server) as session:
        await session.ok("/seed_session", typed("s1", start=5))
        await session.ok("/increment_counter", {"count": 3})
        await session.ok("/seed_session", typed("s2", start=50))
        assert await count_of(session) == 50
        await session.ok("/seed_session", {**ROW, "initial_count": 7})
        assert await count_of(session) == 7
    assert sorted(server.session_id_to_counter.values()) == [7, 8, 50]


async def test_closing_a_typed_session_drops_its_counter_and_no_other():
    server = built(StatefulCounterResourcesServer)
    async with served(server) as session:
        await session.ok("/seed_session", typed("s1"))
        await session.newcomer().ok("/seed_session", typed("s2", start=6, rollout="0-1"))
        await session.ok("/close_session", {"resources_session_id": "s1", "episode_id": EPISODE})
    assert server.session_id_to_counter == {"s2": 6}


async def test_a_refused_close_keeps_the_counter():
    server = built(StatefulCounterResourcesServer)
    async with served(server) as session:
        await session.ok("/seed_session", typed("s1"))
        stranger = {"resources_session_id": "s1", "episode_id": {"rollout_id": "9-9", "attempt": 0}}
        assert (await session.post("/close_session", stranger)).status == 409
    assert server.session_id_to_counter == {"s1": 5}


async def test_a_typed_seed_without_a_whole_number_is_refused_and_opens_nothing():
    server = built(StatefulCounterResourcesServer)
    async with served(server) as session:
        reply = await session.post("/seed_session", typed(start="many"))
        assert (reply.status, "task_data.initial_count: 'many'" in reply.json()["detail"]) == (422, True)
        await session.ok("/seed_session", typed(start=4))
    assert server.session_id_to_counter == {"s1": 4}


async def test_the_contract_of_typed_sessions_is_kept():
    await check_resources_session_contract(built(StatefulCounterResourcesServer).build_app(), typed(), keeps_state=True)

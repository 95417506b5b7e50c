from app import fresh_server
from fastapi.testclient import TestClient
from resources_servers.count_letters.counting import said_last


def test_the_last_number_is_what_is_said():
    assert said_last("not 3, but 12.") == 12
    assert said_last("none") is None


def test_a_tool_counts():
    client = TestClient(fresh_server().setup_webserver())
    assert client.post("/count", json={"word": "strawberry", "letter": "r"}).json() == {"count": 3}


async def test_it_runs_in_a_loop():
    assert fresh_server().config.partial_credit == 0.0

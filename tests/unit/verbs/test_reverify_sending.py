"""How often a judging is sent, and which server it is sent to."""

import pytest
from omegaconf import OmegaConf

from rollbook.errors import ConfigError
from rollbook.records.exchange import Reply, SendFailed
from rollbook.records.failure_kinds import Delivery
from rollbook.verbs.reverify_routes import Answerer, VerifyRoutes
from rollbook.verbs.reverify_sending import VerifyTransport


class Waits:
    """A clock on which waiting takes no time; `waits` are the seconds that were waited."""

    def __init__(self):
        self.waits = []

    async def sleep(self, seconds):
        self.waits.append(seconds)


class Answers:
    """A transport that gives the answers of a list, one a request; `paths` are those that were asked."""

    def __init__(self, *answers):
        self.answers, self.paths = list(answers), []

    async def send(self, _server, path, _body, _exchange=None):
        self.paths.append(path)
        answer = self.answers.pop(0)
        if isinstance(answer, SendFailed):
            raise answer
        return Reply(answer, b"{}")


def lost(delivery=Delivery.POSSIBLY_DELIVERED):
    return SendFailed("gone", delivery=delivery, exception_type="ServerDisconnectedError")


async def sent(*answers, sent_again=3, path="/run"):
    transport, clock = Answers(*answers), Waits()
    try:
        reply = await VerifyTransport(transport, clock, sent_again).send("sums", path, b"{}")
    except SendFailed:
        return transport.paths, None, clock.waits
    return transport.paths, reply.status, clock.waits


async def test_what_dispatch_sends_to_run_goes_to_verify():
    assert await sent(200) == (["/verify"], 200, [])
    assert (await sent(200, path="/aggregate_metrics"))[0] == ["/aggregate_metrics"]


@pytest.mark.parametrize("answer", [lost(), 502, 504])
async def test_a_judging_of_which_nobody_knows_is_sent_again_after_a_wait_that_doubles(answer):
    assert await sent(answer, answer, 200) == (["/verify"] * 3, 200, [0.5, 1.0])


async def test_it_is_sent_again_so_often_and_no_oftener():
    paths, status, _ = await sent(*[lost()] * 4)
    assert (len(paths), status) == (4, None)
    assert (await sent(504, sent_again=0))[:2] == (["/verify"], 504)


@pytest.mark.parametrize("answer", [lost(Delivery.NOT_SENT), lost(Delivery.DELIVERED)])
async def test_what_never_left_and_what_arrived_is_no_business_of_the_transport(answer):
    paths, status, _ = await sent(answer)
    assert (len(paths), status) == (1, None)


@pytest.mark.parametrize("status", [200, 400, 429, 500, 503])
async def test_a_reply_stands(status):
    assert (await sent(status))[:2] == (["/verify"], status)


def routes(**instances):
    return VerifyRoutes(OmegaConf.create(instances))


def resources(**block):
    return {"resources_servers": {"adding": {"entrypoint": "app.py"} | block}}


def agent(server):
    bound = {"type": "resources_servers", "name": server}
    return {"responses_api_agents": {"simple": {"entrypoint": "app.py", "resources_server": bound}}}


def environment(name):
    ref = {"type": "responses_api_agents", "name": name}
    return {"environment_servers": {"legacy_agent": {"entrypoint": "app.py", "agent_server": ref}}}


ALL = {"sums": resources(), "products": resources(), "adder": agent("sums"), "front": environment("multiplier")}
ALL |= {"multiplier": agent("products")}


@pytest.mark.parametrize(
    ("who", "server"),
    [
        (Answerer("products", "front", "adder"), "products"),
        (Answerer("adder", "front", "adder"), "products"),
        (Answerer(None, None, "adder"), "sums"),
        (Answerer(None, "elsewhere", "adder"), "sums"),
        (Answerer("nothing", None, "multiplier"), "products"),
    ],
)
def test_the_source_goes_before_the_environment_server_and_that_before_the_agent(who, server):
    assert routes(**ALL).server_for(who) == server


def test_the_only_resources_server_takes_everything_where_there_is_no_agent_and_says_so():
    only = routes(sums=resources())
    assert {only.server_for(Answerer(None, None, name)) for name in ("one", "another")} == {"sums"}
    assert len(only.notes) == 1


@pytest.mark.parametrize("config", [{"sums": resources(), "products": resources()}, ALL, {"adder": agent("gone")}])
def test_whom_nobody_judges_is_refused_with_what_there_is(config):
    with pytest.raises(ConfigError, match="no resources server is known for answers of agent `stranger`") as refused:
        routes(**config).server_for(Answerer(None, None, "stranger"))
    assert all(name in str(refused.value) for name in ("resources servers:", "agents:"))

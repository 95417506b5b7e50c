"""What model servers tell of their queues, and how they are asked."""

import asyncio
from contextlib import asynccontextmanager, suppress

import pytest

from rollbook.servers.serving.metrics_page import MOST_BYTES
from rollbook.servers.serving.queue_metrics import metrics_url, queues_of
from rollbook.servers.serving.queue_sampling import sample_queues
from rollbook.testing.manual_clock import ManualClock

VLLM = """\
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="a model {of} ours"} 3.0
vllm:num_requests_waiting{engine="1",model_name="b"} 4.0 1719412345000
vllm:num_requests_running{engine="0",model_name="a model {of} ours"} 1.0e+01
vllm:num_requests_running{engine="1",model_name="b"} 20
vllm:num_requests_waiting_by_reason{reason="capacity"} 99
vllm:prompt_tokens_total{model_name="b"} 812.0
"""
SGLANG = 'sglang:num_running_reqs{model_name="m",tp_rank="0"} 7\nsglang:num_queue_reqs{model_name="m",tp_rank="0"} 2\n'
LLAMA_CPP = "llamacpp:requests_processing 4\nllamacpp:requests_deferred 46\n"


@pytest.mark.parametrize(
    ("text", "queues"),
    [
        (VLLM, (7.0, 30.0)),
        (SGLANG, (2.0, 7.0)),
        (LLAMA_CPP, (46.0, 4.0)),
        (VLLM + SGLANG, (9.0, 37.0)),
        ("llamacpp:requests_deferred 0\n", (0.0, 0.0)),
        ("llamacpp:requests_deferred\t5\r\n", (5.0, 0.0)),
        ('vllm:num_requests_waiting {a="b"} 5\n', (5.0, 0.0)),
        ("# vllm:num_requests_waiting 5\n", None),
        ("vllm:num_requests_waiting NaN\nvllm:num_requests_running 3\n", (0.0, 3.0)),
        ("vllm:num_requests_waiting NaN\n", None),
        ("vllm:num_requests_waiting +Inf\n", None),
        ("vllm:num_requests_waiting -1\n", None),
        ('vllm:num_requests_waiting{a="b"}\n', None),
        ("vllm:num_requests_waiting\n", None),
        ("vllm:num_requests_waiting many\n", None),
        ("<html>{not} found</html>", None),
        ("", None),
    ],
)
def test_a_queue_is_what_the_known_names_add_up_to(text, queues):
    assert queues_of(text) == queues


@pytest.mark.parametrize(
    "url", ["http://h:8000", "http://h:8000/", "http://h:8000/v1", "http://h:8000/v1/", "http://h:8000/metrics"]
)
def test_the_root_the_api_and_the_page_itself_name_one_page(url):
    assert metrics_url(url) == "http://h:8000/metrics"


class ModelServer:
    """Answers each request for its metrics with `body`; with None it never answers."""

    def __init__(self, body: str | None, status: int = 200) -> None:
        self.body, self.status = body, status
        self.asked: list[str] = []
        self.url = ""

    async def answer(self, reader, writer):
        self.asked.append((await reader.readline()).decode().split()[1])
        with suppress(ConnectionError):
            if self.body is None:
                await reader.read()
            else:
                head = f"HTTP/1.1 {self.status} X\r\nContent-Length: {len(self.body)}\r\nConnection: close\r\n\r\n"
                writer.write((head + self.body).encode())
                await writer.drain()
        writer.close()


@asynccontextmanager
async def serving(*servers):
    listening = []
    for server in servers:
        listening.append(await asyncio.start_server(server.answer, "127.0.0.1", 0))
        server.url = "http://{}:{}".format(*listening[-1].sockets[0].getsockname())
    yield [server.url for server in servers]
    for each in listening:
        each.close()


@asynccontextmanager
async def sampling(urls, clock, *, seconds=5.0):
    samples = asyncio.Queue()
    task = asyncio.create_task(sample_queues(urls, 30.0, clock, samples.put_nowait, seconds=seconds))
    yield samples
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_sample_sums_over_the_servers_and_the_next_one_follows_after_the_interval():
    clock, vllm, llama = ManualClock(), ModelServer(VLLM), ModelServer(LLAMA_CPP)
    async with serving(vllm, llama) as urls, sampling([urls[0] + "/v1", urls[1]], clock) as samples:
        assert await samples.get() == (53.0, 34.0)
        await clock.asleep()
        assert clock.sleeps == [30.0]
        llama.body = "llamacpp:requests_deferred 0\n"
        clock.advance(30.0)
        assert await samples.get() == (7.0, 30.0)
    assert vllm.asked == llama.asked == ["/metrics", "/metrics"]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (ModelServer(VLLM, status=404), "it answers 404"),
        (ModelServer("up 1\n"), "hold no queue"),
        (ModelServer(LLAMA_CPP + "#" * MOST_BYTES), "longer than 1048576 bytes"),
    ],
)
async def test_a_server_that_fails_is_left_out_of_the_sample_and_named_once(broken, why, caplog):
    clock, good = ManualClock(), ModelServer(SGLANG)
    async with serving(broken, good) as urls, sampling(urls, clock) as samples:
        for _ in range(2):
            assert await samples.get() == (2.0, 7.0)
            await clock.asleep()
            clock.advance(30.0)
    named = [record.getMessage() for record in caplog.records if broken.url in record.getMessage()]
    assert len(named) == 1
    assert why in named[0]


async def test_a_server_that_never_answers_is_given_up_after_its_time(caplog):
    clock = ManualClock()
    async with serving(ModelServer(None)) as urls, sampling(urls, clock, seconds=0.05) as samples:
        await clock.asleep()
        assert samples.empty()
    assert "no answer within 0.05 s" in caplog.text


async def test_there_is_no_sample_where_no_server_answers_and_no_password_in_what_is_said(caplog):
    clock, gone = ManualClock(), ModelServer(SGLANG)
    async with serving(gone) as urls:
        address = urls[0].replace("http://", "http://me:secret@")
    async with sampling([address, "http://me:secret@:x/"], clock) as samples:
        await clock.asleep()
        assert samples.empty()
    assert len(caplog.records) == 2
    assert "secret" not in caplog.text

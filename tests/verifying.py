"""A scripted deployment on loopback whose resources server judges: it counts what it was asked.

`verify` maps a sent row to the reply's own fields, or to a whole response; without it the reward is 1.0.
"""

import asyncio
import threading
from contextlib import contextmanager

from aiohttp import web

from run_folder import said
from stub import AGENT, ENVIRONMENT, Stub

SERVER = "sums"
OTHER = "products"


class Verifier(Stub):
    """`judged` are the rows that `/verify` was sent, as (server, row)."""

    def __init__(self, script=None, verify=None, mode="stateless"):
        super().__init__(script)
        self.verify_script = verify or (lambda _row: {"reward": 1.0})
        self.mode = mode
        self.judged = []
        self.extra = {}

    def config(self):
        here = {"entrypoint": "app.py", "host": "127.0.0.1", "port": self.port}
        config = super().config()
        bound = {"type": "resources_servers", "name": SERVER}
        config[AGENT]["responses_api_agents"]["simple_agent"] |= {"resources_server": bound}
        config[SERVER] = {"resources_servers": {"adding": here}}
        return config | self.extra

    def hosting(self, **blocks):
        here = {"entrypoint": "app.py", "host": "127.0.0.1", "port": self.port}
        self.extra |= {name: {"resources_servers": {"adding": here | block}} for name, block in blocks.items()}
        return self

    async def verify(self, request):
        row = await request.json()
        self.judged.append(row)
        made = self.verify_script(row)
        return made if isinstance(made, web.StreamResponse) else web.json_response(row | made)

    async def tell_mode(self, _request):
        return web.json_response(self.mode)


@contextmanager
def verifying(script=None, verify=None, mode="stateless"):
    """Run one in a thread of its own for as long as the block lasts."""
    stub, started, loop = Verifier(script, verify, mode), threading.Event(), asyncio.new_event_loop()
    stopping = asyncio.Event()

    async def serve():
        app = web.Application(client_max_size=1 << 30)
        app.router.add_get("/global_config_dict_yaml", stub.head)
        app.router.add_post("/run", stub.run)
        app.router.add_post("/verify", stub.verify)
        app.router.add_get("/reverify_mode", stub.tell_mode)
        app.router.add_post("/aggregate_metrics", stub.aggregate)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        stub.port = runner.addresses[0][1]
        started.set()
        await stopping.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    started.wait(10)
    try:
        yield stub
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join(10)
        loop.close()


def reverified(stub, run, output, *flags):
    """Judge the answers of `run` again; nothing is tried again within the command."""
    named = ["--rollouts", str(run), *(["-o", str(output)] if output is not None else [])]
    return said(
        ["eval", "reverify", "--no-serve", *named, "--retry-for", "0", "--concurrency", "1", *flags, *stub.overrides]
    )


def answered(text="4", **fields):
    """Return a `/run` script that answers every row."""
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}
    return lambda row: web.json_response(row | {"reward": 1.0, "response": {"output": [item]}} | fields)


def judge_failed(row):
    """Return what the judge failsafe replies."""
    return {
        "reward": 0.0,
        "mask_sample": True,
        "failure_kind": "judge_failed",
        "failure_reason": "TimeoutError: the judge",
        "_ng_failure_class": "judge_failed",
        "_ng_failure_judge_error": "TimeoutError: the judge",
        "response": row.get("response") or {"output": [{"type": "message", "role": "assistant", "content": []}]},
    }


def of_task(*tasks):
    """Return a test of whether a row is of one of `tasks`."""
    return lambda row: row["_ng_task_index"] in tasks


__all__ = ["AGENT", "ENVIRONMENT", "OTHER", "SERVER", "answered", "judge_failed", "of_task", "reverified", "verifying"]

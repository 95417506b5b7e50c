import asyncio
import gc

import pytest
import uvloop


@pytest.fixture(params=[asyncio.DefaultEventLoopPolicy, uvloop.EventLoopPolicy], ids=["asyncio", "uvloop"])
def event_loop_policy(request):
    return request.param()


@pytest.fixture(autouse=True)
async def nothing_is_left_behind():
    before = asyncio.all_tasks()
    yield
    assert asyncio.all_tasks() <= before | {asyncio.current_task()}
    gc.collect(1)

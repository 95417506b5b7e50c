"""The limit of a rate: posts the same bytes to the same server through aiohttp and uvloop, and discards the replies.

`python limit_client.py URL REQUESTS CONCURRENCY BYTES` prints the requests a second.
"""

import asyncio
import sys
import time

import aiohttp
import uvloop


async def posted(url: str, requests: int, concurrency: int, size: int) -> float:
    """Return how many requests a second went through."""
    body, left = b"x" * size, iter(range(requests))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:

        async def lane() -> None:
            for _ in left:
                async with session.post(url, data=body, headers={"Content-Type": "application/json"}) as reply:
                    await reply.read()

        started = time.perf_counter()
        await asyncio.gather(*(lane() for _ in range(concurrency)))
        return requests / (time.perf_counter() - started)


if __name__ == "__main__":
    print(uvloop.run(posted(sys.argv[1], *map(int, sys.argv[2:5]))))

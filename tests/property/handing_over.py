"""Several words to a ledger at once."""

import asyncio


async def together(calls):
    """Make `calls` in one turn of the loop, so that they go out in one commit; return what awaiting each gives."""

    async def made(call):
        return await call()

    return await asyncio.gather(*map(made, calls))

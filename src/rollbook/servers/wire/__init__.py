"""Requests that must not run twice, over sockets: one POST, one reply, nothing in between.

Rules:
* Nothing here imports aiohttp: a run that only sends needs none of it.
* One call is one request. What was handed to a socket is never sent again.
"""

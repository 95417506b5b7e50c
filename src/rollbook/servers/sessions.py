"""Cookie sessions: one signed cookie per server, and a session id in every one of them.

Rules:
* Cookie name and signing secret are `<class>___<instance>`, so one jar can hold the cookies of all servers.
* Every reply carries `Set-Cookie`: a client that forwards what it was given never loses its session.

Source: servers.md §3.4.
"""

from uuid import uuid4

from fastapi import FastAPI
from starlette.middleware.sessions import SessionMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from rollbook.servers.session_key import SESSION_ID_KEY


class SessionIdMiddleware:
    """Gives each session an id, and assigns it anew on every request so that the cookie is sent again."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request with `session["session_id"]` set."""
        session = scope.get("session")
        if session is not None:
            session[SESSION_ID_KEY] = session.get(SESSION_ID_KEY) or str(uuid4())
        await self.app(scope, receive, send)


def install_sessions(app: FastAPI, key: str) -> None:
    """Put cookie sessions on `app`; `key` is both the cookie's name and its signing secret."""
    app.add_middleware(SessionIdMiddleware)
    app.add_middleware(SessionMiddleware, secret_key=key, session_cookie=key)

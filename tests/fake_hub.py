"""The part of the Hugging Face hub's HTTP API that data sets need, on loopback."""

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34
TOKEN = "hf_a_secret_that_nobody_may_read"


class FakeHub:
    """One data set `owner/sums` with `files`; `refusal` answers everything, `served` stands for a file's content.

    `told` stands for what it says of every file. `cut_after` ends the next body after so many bytes.
    """

    def __init__(self) -> None:
        self.repo = "owner/sums"
        self.files: dict[str, bytes] = {}
        self.served: dict[str, bytes] = {}
        self.large: set[str] = set()
        self.revisions = {"main": COMMIT, COMMIT: COMMIT}
        self.refusal: tuple[int, dict[str, str]] | None = None
        self.told: dict[str, object] = {}
        self.names_no_commit = False
        self.cut_after: int | None = None
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.commits: list[dict] = []
        self.made: list[dict] = []
        self.port = 0

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def siblings(self) -> list[dict]:
        return [self._sibling(name, content) for name, content in self.files.items()]

    def _sibling(self, name: str, content: bytes) -> dict:
        blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
        told = {"rfilename": name, "size": len(content), "blobId": blob}
        if name in self.large:
            told["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
        return told | self.told


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: FakeHub

    def log_message(self, *_: object) -> None: ...

    def do_HEAD(self) -> None:
        self._answer(b"")

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self.rfile.read(int(self.headers.get("Content-Length") or 0)))

    def _answer(self, body: bytes) -> None:
        hub, path = self.hub, unquote(urlsplit(self.path).path)
        hub.requests.append((self.command, self.path, {name.lower(): value for name, value in self.headers.items()}))
        parts = path.strip("/").split("/")
        if hub.refusal is not None:
            status, headers = hub.refusal
            return self._send(status, b"", headers)
        if path.startswith("/api/"):
            return self._api(parts[1:], body)
        return self._file("/".join(parts[1:3]), parts[4], "/".join(parts[5:]))

    def _api(self, parts: list[str], body: bytes) -> None:
        hub = self.hub
        if parts == ["repos", "create"]:
            hub.made.append(json.loads(body))
            return self._json({"url": f"{hub.endpoint}/datasets/{hub.repo}", "name": hub.repo, "id": "1"})
        if "/".join(parts[1:3]) != hub.repo:
            return self._send(404, b"", {"X-Error-Code": "RepoNotFound"})
        rest = parts[3:]
        if rest[:1] == ["preupload"]:
            named = [{"path": one["path"], "uploadMode": "regular"} for one in json.loads(body)["files"]]
            return self._json({"files": [one | {"shouldIgnore": False} for one in named]})
        if rest[:1] == ["commit"]:
            return self._commit(rest[1], body)
        commit = hub.revisions.get(rest[1] if rest[:1] == ["revision"] else "main")
        if commit is None and not hub.names_no_commit:
            return self._send(404, b"", {"X-Error-Code": "RevisionNotFound"})
        info = {"id": hub.repo, "sha": commit, "private": False, "tags": [], "downloads": 0, "likes": 0}
        return self._json(info | {"siblings": hub.siblings()})

    def _commit(self, revision: str, body: bytes) -> None:
        header, *operations = [json.loads(line) for line in body.splitlines()]
        files = {
            one["value"]["path"]: base64.b64decode(one["value"]["content"])
            for one in operations
            if one["key"] == "file"
        }
        proposed = "create_pr=1" in self.path
        self.hub.commits.append({"revision": revision, "files": files, "proposed": proposed, **header["value"]})
        url = f"{self.hub.endpoint}/datasets/{self.hub.repo}"
        answer = {"commitUrl": f"{url}/commit/{COMMIT}", "commitOid": COMMIT, "hookOutput": ""}
        self._json(answer | ({"pullRequestUrl": f"{url}/discussions/1"} if proposed else {}))

    def _file(self, repo: str, revision: str, name: str) -> None:
        hub = self.hub
        if repo != hub.repo or revision not in hub.revisions or name not in hub.files:
            return self._send(404, b"", {"X-Error-Code": "EntryNotFound"})
        content = hub.served.get(name, hub.files[name])
        etag = hashlib.sha256(hub.files[name]).hexdigest()
        headers = {"ETag": f'"{etag}"', "X-Repo-Commit": hub.revisions[revision], "Accept-Ranges": "bytes"}
        if self.command == "HEAD":
            return self._send(200, b"", headers | {"X-Linked-Size": str(len(hub.files[name]))}, len(content))
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
        ranged = {"Content-Range": f"bytes {start}-{len(content) - 1}/{len(content)}"} if start else {}
        whole = content[start:]
        sent, hub.cut_after = whole[: hub.cut_after], None
        self._send(206 if start else 200, sent, headers | ranged, len(whole))
        if len(sent) < len(whole):
            self.close_connection = True
        return None

    def _json(self, value: object) -> None:
        self._send(200, json.dumps(value).encode(), {"Content-Type": "application/json"})

    def _send(self, status: int, body: bytes, headers: dict[str, str], length: int | None = None) -> None:
        self.send_response(status)
        for name, value in {"X-Request-Id": "r1", **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextmanager
def serving_hub() -> Iterator[FakeHub]:
    hub = FakeHub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    hub.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

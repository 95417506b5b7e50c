"""Stands in for `llama-server`: `--mode ready`, `slow` (never ready) or `broken` (ends at once)."""

import argparse
import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.reply(503 if OPTIONS.mode == "slow" else 200, {"status": "ok"})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        message = {"role": "assistant", "content": f"{OPTIONS.model} heard {body['messages'][-1]['content']}"}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        self.reply(200, {"id": "c", "created": 1, "model": body["model"], "choices": [choice]})

    def reply(self, status, body):
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


parser = argparse.ArgumentParser()
for name in ("--model", "--host", "--ctx-size", "--parallel", "--pid-file"):
    parser.add_argument(name)
parser.add_argument("--port", type=int)
parser.add_argument("--jinja", action="store_true")
parser.add_argument("--mode", default="ready")
OPTIONS = parser.parse_args()
if OPTIONS.mode == "broken":
    sys.exit("cannot read the model: bad magic")
Path(OPTIONS.pid_file).write_text(str(os.getpid()))
HTTPServer((OPTIONS.host, OPTIONS.port), Handler).serve_forever()

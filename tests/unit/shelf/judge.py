"""A judge that answers with what it was given."""

from rollbook import BaseServerConfig, NeMoGymResponse, ServerClient
from unit.shelf.calling import response

JUDGE = {"type": "responses_api_models", "name": "judge"}


class Judge(ServerClient):
    """Answers each judge's request with the next of its replies; an exception is raised."""

    def __init__(self, *replies):
        super().__init__(BaseServerConfig(host="127.0.0.1", port=1), {})
        self.replies = list(replies)
        self.asked = []

    async def post(self, server_name, url_path, json=None, **options):
        self.asked.append((server_name, url_path, json))
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return Given(reply if isinstance(reply, dict) else response(reply))


class Given:
    """A reply of status 200."""

    status = 200
    ok = True

    def __init__(self, body):
        self.body = body

    async def json(self, **options):
        return self.body

    async def read(self):
        return NeMoGymResponse.model_validate(self.body).model_dump_json().encode()

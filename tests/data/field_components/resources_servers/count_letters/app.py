"""How often a letter is in a word: written against the import names of NeMo Gym."""

from pathlib import Path

from fastapi import FastAPI
from nemo_gym.base_resources_server import (
    BaseResourcesServerConfig,
    BaseRunRequest,
    BaseVerifyRequest,
    BaseVerifyResponse,
    SimpleResourcesServer,
)
from nemo_gym.config_types import BaseServerConfig
from nemo_gym.server_utils import ServerClient
from nemo_gym.verifier_fixture import VerifierFixture
from omegaconf import OmegaConf
from pydantic import BaseModel
from resources_servers.count_letters.counting import said_last


class CountLettersConfig(BaseResourcesServerConfig):
    partial_credit: float = 0.0


class CountLettersRunRequest(BaseRunRequest):
    word: str
    letter: str


class CountLettersVerifyRequest(CountLettersRunRequest, BaseVerifyRequest):
    pass


class CountLettersVerifyResponse(BaseVerifyResponse):
    counted: int | None


class Question(BaseModel):
    word: str
    letter: str


class CountLettersServer(SimpleResourcesServer):
    config: CountLettersConfig

    def setup_webserver(self) -> FastAPI:
        app = super().setup_webserver()
        app.post("/count")(self.count)
        return app

    async def count(self, body: Question) -> dict[str, int]:
        return {"count": body.word.count(body.letter)}

    async def verify(self, body: CountLettersVerifyRequest) -> CountLettersVerifyResponse:
        counted = said_last(body.response.output_text)
        right = body.word.count(body.letter)
        near = counted is not None and abs(counted - right) == 1
        reward = 1.0 if counted == right else self.config.partial_credit if near else 0.0
        return CountLettersVerifyResponse(**body.model_dump(), reward=reward, counted=counted)


def fresh_server() -> CountLettersServer:
    config = CountLettersConfig(host="", port=0, entrypoint="", name="count_letters")
    head = BaseServerConfig(host="127.0.0.1", port=1)
    return CountLettersServer(config=config, server_client=ServerClient(head, OmegaConf.create({})))


VERIFIER_FIXTURE = VerifierFixture(
    server_factory=fresh_server,
    request_model=CountLettersVerifyRequest,
    cases_path=Path(__file__).parent / "tests" / "verifier_cases.jsonl",
)


if __name__ == "__main__":
    CountLettersServer.run_webserver()

"""A model server without a model: seeded answers, waits and faults, the same ones every time.

Rules:
* What is said follows from the seed, the prompt and the number of the repeat, so that a run gives the same rewards
  however it is served, in whatever order, and after however many interruptions.
* The number of the repeat is the rollout's; without a rollout it is the request's own seed, else a count per prompt.
* The data sets that hold the right answers are read when the server starts.

Source: servers.md §3.9.
"""

import re
from typing import Final

from fastapi import FastAPI
from pydantic import PrivateAttr

from responses_api_models.simulated_model.answers import AnswerBook
from responses_api_models.simulated_model.chance import Chance, digest_of
from responses_api_models.simulated_model.conversation import (
    Conversation,
    digest_of_turns,
    from_chat,
    from_responses,
)
from responses_api_models.simulated_model.data_sets import answer_files
from responses_api_models.simulated_model.policy import Said, answer_to, behaviour_of
from responses_api_models.simulated_model.replies import as_completion, as_response
from responses_api_models.simulated_model.settings import SimulatedModelConfig
from responses_api_models.simulated_model.unreliable import Times, Unreliable
from rollbook import (
    NeMoGymChatCompletion,
    NeMoGymChatCompletionCreateParamsNonStreaming,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    SimpleResponsesAPIModel,
    current_rollout_id,
)

_INDEXED: Final = re.compile(r"\d+-(\d+)(?:-a\d+)?")
_ATTEMPT: Final = re.compile(r"-a\d+$")


def repeat_of(rollout_id: str) -> str:
    """Return which repeat a rollout is: its rollout index, or its own id where it has no indices; never the attempt."""
    indexed = _INDEXED.fullmatch(rollout_id)
    return indexed[1] if indexed else _ATTEMPT.sub("", rollout_id)


class SimulatedModel(SimpleResponsesAPIModel):
    """Answers Responses and chat completion requests without a model."""

    config: SimulatedModelConfig

    _book: AnswerBook = PrivateAttr(default_factory=AnswerBook)
    _times: Times = PrivateAttr(default_factory=Times)

    def setup_webserver(self) -> FastAPI:
        """Return the application, after reading the answers.

        Raises:
            ConfigError: `answers_fpath` names a file that is not there.

        """
        for path in answer_files(self.config.answers_fpath, self.server_client.global_config_dict):
            self._book.read(path)
        app = super().setup_webserver()
        app.add_middleware(Unreliable, seed=self.config.seed, latency=self.config.latency, faults=self.config.faults)
        return app

    async def responses(self, body: NeMoGymResponseCreateParamsNonStreaming) -> NeMoGymResponse:
        """Answer in the Responses dialect."""
        conversation = from_responses(body.model_dump(exclude_unset=True))
        said, key = self._said(conversation)
        return as_response(said, conversation, key, body.model or self.config.model)

    async def chat_completions(self, body: NeMoGymChatCompletionCreateParamsNonStreaming) -> NeMoGymChatCompletion:
        """Answer in the chat dialect."""
        conversation = from_chat(body.model_dump(exclude_unset=True))
        said, key = self._said(conversation)
        return as_completion(said, conversation, key, body.model or self.config.model)

    def _said(self, conversation: Conversation) -> tuple[Said, str]:
        prompt = digest_of_turns(conversation.prompt)
        key = digest_of(self.config.seed, prompt, self._repeat(conversation))
        chance = Chance(key)
        known = self._book.find(conversation.turns)
        said = answer_to(conversation, known, behaviour_of(self.config.policy, chance), chance, self._book.others)
        return said, digest_of(key, len(conversation.turns))

    def _repeat(self, conversation: Conversation) -> str:
        rollout_id = current_rollout_id()
        if rollout_id is not None:
            return repeat_of(rollout_id)
        if conversation.seed is not None:
            return f"seed {conversation.seed}"
        return str(self._times.next(digest_of_turns(conversation.turns)))


if __name__ == "__main__":
    SimulatedModel.run_webserver()

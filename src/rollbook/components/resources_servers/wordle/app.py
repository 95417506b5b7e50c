"""Wordle: a word of five letters is sought by tool calls; the reward says how soon and how cleverly it was found.

Rules:
* A response without a tool call gives the game up. The calls of one response are played in their order.
* The reward is paid once, when the game ends.
* A row without a word of its own gets one by its seed, or by its rollout, whatever the attempt.

Source: servers.md §6.2, §7.3 (9).
"""

import random
from typing import Any, Final

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from resources_servers.gymnasium import (
    GymnasiumServer,
    GymnasiumServerConfig,
    Observed,
    Stepped,
    episode_seed,
    tool_output,
)
from resources_servers.wordle.game import Game, why_no_word
from resources_servers.wordle.words import guesses, targets
from rollbook import NeMoGymResponse, NeMoGymResponseFunctionToolCall, untrusted_json

CONFLICT: Final = 409
UNPROCESSABLE: Final = 422
LENGTH: Final = 5


class WordleConfig(GymnasiumServerConfig):
    """`deal_seed`: null gives rows without a word and a seed of their own one at random."""

    deal_seed: int | None = 0


class WordleRow(BaseModel):
    """What a row says of its game."""

    custom_target: str | None = None
    word_length: int = LENGTH
    max_turns: int = Field(default=6, ge=1, le=100)


class SubmitGuessRequest(BaseModel):
    """The arguments of a guess."""

    model_config = ConfigDict(strict=True)

    guess: str


class CheckWordValidityRequest(BaseModel):
    """The arguments of a check."""

    model_config = ConfigDict(strict=True)

    word: str


class WordleResourcesServer(GymnasiumServer):
    """Plays Wordle."""

    config: WordleConfig

    async def reset(self, metadata: dict[str, Any], session_id: str) -> Observed:
        """Choose the word.

        Raises:
            HTTPException: 422; the row's word is none, has not five letters, or its turns are no number.

        """
        row = row_in(metadata)
        target = (row.custom_target or self._drawn(metadata)).strip().lower()
        reason = why_no_word(target, LENGTH, guesses() | {target})
        if reason is not None or row.word_length != LENGTH or not target.isalpha():
            raise HTTPException(UNPROCESSABLE, f"custom_target {target!r}: give a word of {LENGTH} letters")
        self.session_state[session_id] = Game(target=target, turns=row.max_turns)
        return None, {}

    async def step(self, action: NeMoGymResponse, metadata: dict[str, Any], session_id: str) -> Stepped:
        """Play the calls of a response.

        Raises:
            HTTPException: 409; no game is being played in this session.

        """
        del metadata
        game: Game | None = self.session_state.get(session_id)
        if game is None:
            raise HTTPException(CONFLICT, "no game is being played in this session; post the row to /reset first")
        outputs = [
            tool_output(item, played(game, item))
            for item in action.output
            if item.type == "function_call" and not game.over
        ]
        if game.over or not outputs:
            return None, game.reward(), True, False, game.info()
        return None, 0.0, False, False, game.info() | {"tool_outputs": outputs}

    def _drawn(self, metadata: dict[str, Any]) -> str:
        return random.Random(episode_seed(metadata, self.config.deal_seed, self.config.name)).choice(targets())  # noqa: S311  a game, and no secret


def row_in(metadata: dict[str, Any]) -> WordleRow:
    """Return what a row says of its game.

    Raises:
        HTTPException: 422; a field of it has the wrong type.

    """
    try:
        return WordleRow.model_validate(metadata)
    except ValidationError as error:
        raise HTTPException(UNPROCESSABLE, f"the row's game cannot be read: {error.errors()[0]['msg']}") from error


def played(game: Game, call: NeMoGymResponseFunctionToolCall) -> dict[str, Any]:
    """Return what a tool answers."""
    try:
        arguments = untrusted_json(call.arguments or "{}")
        match call.name:
            case "submit_guess":
                return game.guess(SubmitGuessRequest.model_validate(arguments).guess, guesses())
            case "check_word_validity":
                word = CheckWordValidityRequest.model_validate(arguments).word.strip().lower()
                reason = game.why_no_guess(word, guesses())
                return {"valid": reason is None, "reason": reason or "Valid word"}
            case "get_game_state":
                return game.state()
    except ValueError as error:
        return {"error": f"Invalid arguments for {call.name}: {said(error)}"}
    return {"error": f"Unknown tool: {call.name}"}


def said(error: Exception) -> str:
    """Return what is wrong with a call's arguments, in one line."""
    return error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)


if __name__ == "__main__":
    WordleResourcesServer.run_webserver()

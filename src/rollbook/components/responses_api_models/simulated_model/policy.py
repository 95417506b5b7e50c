"""What a simulated model says: a pure function of its settings, the conversation and the repeat.

Rules:
* One prompt of one repeat meets one behaviour, which its tool calls and its last message share.
* A right answer calls the tools first; a wrong one answers without them.
* Whatever is asked, there is something to say: a prompt that no row knows is answered too.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from responses_api_models.simulated_model.answers import Known
from responses_api_models.simulated_model.chance import Chance
from responses_api_models.simulated_model.conversation import Conversation
from responses_api_models.simulated_model.settings import PolicySettings
from responses_api_models.simulated_model.tool_calls import Call, calls_for
from responses_api_models.simulated_model.wording import REFUSAL, malformed, style_of, well_formed

_NUMBER: Final = re.compile(r"\s*(-?[0-9]{1,15}(?:\.[0-9]+)?)\s*")
_ACTION: Final = re.compile(r"<action>\s*(\w+)\s*</action>")
_HAND: Final = re.compile(r"(?:total|value|worth)\D*(\d+)", re.IGNORECASE)
_STANDS_FROM: Final = 17
_RESULT_CHARS: Final = 400
_UNKNOWN: Final = "That is beyond what this model was told."


class Behaviour(StrEnum):
    """How one answer turns out."""

    RIGHT = "right"
    WRONG = "wrong"
    MALFORMED = "malformed"
    REFUSES = "refuses"


@dataclass(frozen=True, slots=True)
class Said:
    """One answer of the model: a text, or calls to make before there is one."""

    text: str = ""
    calls: tuple[Call, ...] = ()


def behaviour_of(settings: PolicySettings, chance: Chance) -> Behaviour:
    """Return how the answer that `chance` belongs to turns out."""
    weights = {
        Behaviour.WRONG: settings.wrong,
        Behaviour.MALFORMED: settings.malformed,
        Behaviour.REFUSES: settings.refuses,
    }
    if chance.share("right") < settings.p_correct:
        return Behaviour.RIGHT
    return chance.weighted(weights, "otherwise")


def answer_to(
    conversation: Conversation, known: Known | None, behaviour: Behaviour, chance: Chance, others: Sequence[str] = ()
) -> Said:
    """Return what the model says next; `others` are answers to other prompts, to be wrong with."""
    if behaviour is Behaviour.REFUSES:
        return Said(REFUSAL)
    calls = _calls_left(conversation, known)
    if calls and behaviour is Behaviour.RIGHT:
        return Said(calls=calls)
    if calls and behaviour is Behaviour.MALFORMED and conversation.calls_made == 0:
        return Said(calls=(_broken(calls[0]),))
    actions = tuple(dict.fromkeys(_ACTION.findall(conversation.instructions)))
    if actions:
        return Said(_move(conversation.asked, actions, behaviour))
    return Said(_message(conversation, known or Known(), behaviour, chance, others))


def wrong_answer(known: Known, chance: Chance, others: Sequence[str] = ()) -> str:
    """Return an answer that is none: another letter, another number, or the answer to something else."""
    right = known.answer or ""
    letters = [letter for letter in known.letters if letter.strip().upper() != right.strip().upper()]
    if letters:
        return chance.one_of(letters, "letter")
    number = _NUMBER.fullmatch(right)
    if number is not None:
        return str(int(float(number[1])) + 1 + int(chance.share("number") * 9))
    elsewhere = [other for other in others if other != right]
    return chance.one_of(elsewhere, "elsewhere") if elsewhere else f"not {right}".strip()


def _calls_left(conversation: Conversation, known: Known | None) -> tuple[Call, ...]:
    if not conversation.calls_allowed or not conversation.tools:
        return ()
    names = {tool.name for tool in conversation.tools}
    listed = tuple(call for call in (known.calls if known else ()) if call.name in names)
    calls = listed or calls_for(conversation.asked, conversation.tools)
    left = calls[conversation.calls_made :]
    return left if conversation.calls_at_once else left[:1]


def _broken(call: Call) -> Call:
    return Call(call.name, call.arguments.rstrip("}"))


def _move(asked: str, actions: Sequence[str], behaviour: Behaviour) -> str:
    """Return an action: the one of a player who stands from 17 on when right, the other one when wrong."""
    hand = _HAND.search(asked)
    best = 1 if hand and int(hand[1]) >= _STANDS_FROM and len(actions) > 1 else 0
    if behaviour is Behaviour.MALFORMED:
        return f"<action>{actions[best]}"
    chosen = best if behaviour is Behaviour.RIGHT else (best + 1) % len(actions)
    return f"<action>{actions[chosen]}</action>"


def _message(
    conversation: Conversation, known: Known, behaviour: Behaviour, chance: Chance, others: Sequence[str]
) -> str:
    if known.answer is None:
        return _without_answer(conversation, behaviour)
    style = style_of(conversation.instructions, known.style, known.fallback)
    match behaviour:
        case Behaviour.RIGHT:
            return well_formed(style, known.answer, known.prefix)
        case Behaviour.MALFORMED:
            return malformed(style, known.answer)
        case _:
            return well_formed(style, wrong_answer(known, chance, others), known.prefix)


def _without_answer(conversation: Conversation, behaviour: Behaviour) -> str:
    result = conversation.last_result
    if result is None or behaviour is not Behaviour.RIGHT:
        return _UNKNOWN
    return f"Done. {result[:_RESULT_CHARS]}"

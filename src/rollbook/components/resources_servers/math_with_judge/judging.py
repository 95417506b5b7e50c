"""What a judge model is asked about two answers, and how its verdict is read.

Rules:
* The verdict is the label that comes first in the last part of the judge's last message.
* Whatever holds no verdict says that the answers differ.

Source: servers.md §7.3 (2).
"""

from typing import Final

from rollbook import (
    NeMoGymEasyInputMessage,
    NeMoGymResponse,
    NeMoGymResponseCreateParamsNonStreaming,
    NeMoGymResponseOutputMessage,
    NeMoGymResponseOutputText,
)

EQUAL: Final = "[[A=B]]"
DIFFERENT: Final = "[[A!=B]]"
INSTRUCTIONS: Final = f"""\
You compare two answers to one mathematical problem. They are equal when they state the same value, set or
expression, however it is written: a fraction and its decimal form, a factored and an expanded polynomial, a name and
its symbol. They are not equal when one of them leaves something out, adds something, or states only approximately
what the other states exactly. Do not solve the problem, and do not ask which answer is right: ask only whether both
say the same.

Reason briefly. Then end with {EQUAL} when the answers are equal, or with {DIFFERENT} when they are not. Write one of
the two, once."""
_QUESTION: Final = """\
Problem:
{question}

Answer A:
{first}

Answer B:
{second}"""


def judge_request(
    params: NeMoGymResponseCreateParamsNonStreaming, question: str, first: str, second: str
) -> NeMoGymResponseCreateParamsNonStreaming:
    """Return `params` with the comparison of two answers as its input."""
    text = _QUESTION.format(question=question, first=first, second=second)
    messages = [
        NeMoGymEasyInputMessage(role="system", content=INSTRUCTIONS),
        NeMoGymEasyInputMessage(role="user", content=text),
    ]
    return params.model_copy(update={"input": messages})


def says_equal(response: NeMoGymResponse) -> bool:
    """Whether the judge says that the answers are equal."""
    text = _last_text(response)
    equal, different = text.find(EQUAL), text.find(DIFFERENT)
    return equal >= 0 and (different < 0 or equal < different)


def _last_text(response: NeMoGymResponse) -> str:
    last = response.output[-1] if response.output else None
    parts = last.content if isinstance(last, NeMoGymResponseOutputMessage) else []
    part = parts[-1] if parts else None
    return part.text if isinstance(part, NeMoGymResponseOutputText) else ""

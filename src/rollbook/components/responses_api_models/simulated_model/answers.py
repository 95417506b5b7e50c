"""What the rows of data sets say is right, found by the prompt that they ask.

Rules:
* A request is looked up by the longest beginning of it that some row asks; what came after does not matter.
* A row without a request of its own, whose prompt a template makes, is found by its question inside what is asked.
* Two rows that ask the same are one: the first stands.
* Of a row only its answer is kept, so that memory follows the answers and not the prompts.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from responses_api_models.simulated_model.conversation import Turn, digest_of_turns, prefix_digests, responses_turns
from responses_api_models.simulated_model.tool_calls import Call
from responses_api_models.simulated_model.wording import Style

_LOG = logging.getLogger(__name__)
_ANSWER_FIELDS: Final = ("expected_answer", "answer", "expected_result", "expected", "ground_truth")
_CALL_FIELDS: Final = ("expected_answers", "expected_calls", "ground_truth")
_STYLES: Final = {
    "strict_single_letter_boxed": Style.BOXED,
    "lenient_boxed": Style.BOXED,
    "lenient_answer_colon": Style.COLON,
    "lenient_answer_colon_md": Style.COLON,
}
_QUESTION_FIELDS: Final = ("question", "problem", "prompt")
_OTHERS_KEPT: Final = 64
_QUESTIONS_KEPT: Final = 20_000


@dataclass(frozen=True, slots=True)
class Known:
    """What one row says is right. `style` is None where the row leaves the form of the answer to its prompt."""

    answer: str | None = None
    letters: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    style: Style | None = None
    prefix: str | None = None
    fallback: Style = Style.PLAIN


@dataclass(slots=True)
class AnswerBook:
    """Rows by their prompts. `others` are some of the answers, to be wrong with."""

    others: list[str] = field(default_factory=list)
    _known: dict[str, Known] = field(default_factory=dict)
    _by_question: dict[str, Known] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self._known) + len(self._by_question)

    def add(self, row: Mapping[str, object]) -> None:
        """Learn one row."""
        params = row.get("responses_create_params")
        turns = responses_turns(params) if isinstance(params, Mapping) else ()
        known = known_from(row)
        question = _question(row)
        if turns:
            self._known.setdefault(digest_of_turns(turns), known)
        elif question and len(self._by_question) < _QUESTIONS_KEPT:
            self._by_question.setdefault(question, known)
        if known.answer is not None and len(self.others) < _OTHERS_KEPT and known.answer not in self.others:
            self.others.append(known.answer)

    def read(self, path: Path) -> None:
        """Learn the rows of a JSON Lines file; a line that is no JSON object is left to whoever runs it."""
        with path.open("rb") as file:
            for number, line in enumerate(file, start=1):
                try:
                    row = orjson.loads(line) if line.strip() else {}
                except orjson.JSONDecodeError as error:
                    _LOG.warning("%s:%d is no JSON (%s); no answer is learnt from it", path, number, error)
                    continue
                if isinstance(row, dict):
                    self.add(row)

    def find(self, turns: Sequence[Turn]) -> Known | None:
        """Return what is known about the prompt that `turns` begin with."""
        found = None
        for digest in prefix_digests(turns):
            found = self._known.get(digest, found)
        return found or self._asked_inside(turns)

    def _asked_inside(self, turns: Sequence[Turn]) -> Known | None:
        if not self._by_question:
            return None
        asked = "\n".join(turn.text for turn in turns if turn.role == "user")
        return max(
            (entry for entry in self._by_question.items() if entry[0] in asked),
            key=lambda entry: len(entry[0]),
            default=("", None),
        )[1]


def known_from(row: Mapping[str, object]) -> Known:
    """Return what `row` says is right, from the fields that environments keep it in."""
    template = row.get("template_metadata")
    prefix = template.get("answer_prefix") if isinstance(template, Mapping) else None
    metadata = row.get("metadata")
    tagged = isinstance(metadata, Mapping) and "source_dataset" in metadata
    return Known(
        answer=_answer(row),
        letters=_letters(row.get("options")),
        calls=_calls(row),
        style=_STYLES.get(str(row.get("grading_mode"))),
        prefix=prefix if isinstance(prefix, str) else None,
        fallback=Style.TAG if tagged else Style.PLAIN,
    )


def _question(row: Mapping[str, object]) -> str:
    values = (row.get(name) for name in _QUESTION_FIELDS)
    return next((value.strip() for value in values if isinstance(value, str)), "")


def _answer(row: Mapping[str, object]) -> str | None:
    values = (row.get(name) for name in _ANSWER_FIELDS)
    return next((str(value) for value in values if isinstance(value, (str, int, float))), None)


def _letters(options: object) -> tuple[str, ...]:
    if not isinstance(options, Sequence) or isinstance(options, str):
        return ()
    return tuple(str(letter) for option in options if isinstance(option, Mapping) for letter in option)


def _calls(row: Mapping[str, object]) -> tuple[Call, ...]:
    for name in _CALL_FIELDS:
        value = row.get(name)
        entries = value if isinstance(value, list) else []
        calls = [Call(str(entry["name"]), _arguments(entry)) for entry in entries if _is_call(entry)]
        if calls:
            return tuple(calls)
    return ()


def _is_call(entry: object) -> bool:
    return isinstance(entry, Mapping) and isinstance(entry.get("name"), str) and "arguments" in entry


def _arguments(entry: Mapping[str, object]) -> str:
    arguments = entry["arguments"]
    return arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()

"""What the rows of data sets say is right, found by the prompt that they ask.

Rules:
* A request is looked up by the longest beginning of it that some row asks; what came after does not matter.
* Two rows that ask the same are one: the first stands.
* Of a row only its answer is kept, so that memory follows the answers and not the prompts.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import orjson

from responses_api_models.simulated_model.conversation import Turn, prefix_digests, responses_turns
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
_OTHERS_KEPT: Final = 64


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

    def __len__(self) -> int:
        return len(self._known)

    def add(self, row: Mapping[str, object]) -> None:
        """Learn one row."""
        params = row.get("responses_create_params")
        turns = responses_turns(params) if isinstance(params, Mapping) else ()
        digests = list(prefix_digests(turns))
        if not digests:
            return
        known = known_from(row)
        self._known.setdefault(digests[-1], known)
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

    def find(self, turns: Iterable[Turn]) -> Known | None:
        """Return what is known about the prompt that `turns` begin with."""
        found = None
        for digest in prefix_digests(turns):
            found = self._known.get(digest, found)
        return found


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

"""Constraints on the form of a text: lists, sections, marks, capitals, JSON, copies.

Source: Zhou et al. 2023; Pyatkin et al. 2025.
"""

import json
import re
from typing import Final

from resources_servers.instruction_following.reading import Check, Options, holds, sentences, tokens

_CONSTRAINED: Final = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_BULLETS: Final = (re.compile(r"^[ \t]*\*[^*\n]", re.MULTILINE), re.compile(r"^[ \t]*-", re.MULTILINE))
_PLACEHOLDER: Final = re.compile(r"\[[^\[\]\n]*\]")
_HIGHLIGHTS: Final = (re.compile(r"\*[^\n*]*\*"), re.compile(r"\*\*[^\n*]*\*\*"))
_FENCE: Final = re.compile(r"\A```(?:json)?|```\Z", re.IGNORECASE)
_SEPARATOR: Final = "******"
_TWO: Final = 2


def placeholders(text: str, options: Options) -> bool:
    """There are at least as many placeholders in square brackets as is asked."""
    return len(_PLACEHOLDER.findall(text)) >= int(options["num_placeholders"])


def bullets(text: str, options: Options) -> bool:
    """There are as many bullet points as is asked."""
    return sum(len(pattern.findall(text)) for pattern in _BULLETS) == int(options["num_bullets"])


def constrained(text: str, _: Options) -> bool:
    """One of three answers is given."""
    return any(answer in text for answer in _CONSTRAINED)


def highlights(text: str, options: Options) -> bool:
    """At least as many passages are highlighted as is asked."""
    found = [passage for pattern in _HIGHLIGHTS for passage in pattern.findall(text) if passage.strip("* \t")]
    return len(found) >= int(options["num_highlights"])


def sections(text: str, options: Options) -> bool:
    """There are at least as many numbered sections as is asked."""
    return len(re.findall(rf"{re.escape(options['section_spliter'])}\s?\d+", text)) >= int(options["num_sections"])


def is_json(text: str, _: Options) -> bool:
    """The whole text is JSON, in a code block or not."""
    try:
        json.loads(_FENCE.sub("", text.strip()).strip())
    except (ValueError, RecursionError):
        return False
    return True


def title(text: str, _: Options) -> bool:
    """There is a title in double angular brackets."""
    lines = (line[line.find("<<") : line.rfind(">>")] for line in text.splitlines() if "<<" in line)
    return any(line.strip("<> \t") for line in lines)


def two_responses(text: str, _: Options) -> bool:
    """Two different responses are given, six asterisks between them."""
    parts = [part.strip() for part in text.split(_SEPARATOR)]
    if not all(parts[1:-1]):
        return False
    filled = [part for part in parts if part]
    return len(filled) == _TWO and filled[0] != filled[1]


def capitals(text: str, _: Options) -> bool:
    """Every letter is a capital."""
    return text.isupper()


def small_letters(text: str, _: Options) -> bool:
    """No letter is a capital."""
    return text.islower()


def capital_words(text: str, options: Options) -> bool:
    """There are as many words in capitals as is asked."""
    return holds(options, sum(word.isupper() for word in tokens(text)), "capital_frequency", "capital_relation")


def without(mark: str) -> Check:
    """Return the check that a text is without a mark."""
    return lambda text, _: mark not in text


def hyphenated(text: str, _: Options) -> bool:
    """Sentences are joined by hyphens alone."""
    return "-" in text and len(sentences(text)) == 1 and " - " not in text


def bracketed(text: str, _: Options) -> bool:
    """Every word stands in square brackets."""
    said = text.split()
    return bool(said) and all(word.startswith("[") and word.endswith("]") for word in said)


def bigrams(text: str, _: Options) -> bool:
    """Every two words stand in double angular brackets."""
    said = text.split()
    pairs = list(zip(said[::2], said[1::2], strict=False))
    return bool(pairs) and all(first.startswith("<<") and second.endswith(">>") for first, second in pairs)


def prompt_first(text: str, options: Options) -> bool:
    """The request is repeated before the answer."""
    return _plain(text).startswith(_plain(options["prompt_to_repeat"]))


def copied(text: str, options: Options) -> bool:
    """The request is repeated and nothing else is said."""
    return _plain(text) == _plain(options["prompt_to_repeat"])


def copied_often(text: str, options: Options) -> bool:
    """The request is repeated as often as is asked, six asterisks between the copies, and nothing else is said."""
    wanted = _plain(options["prompt_to_repeat"])
    return [_plain(part) for part in text.split(_SEPARATOR)] == [wanted] * int(options["N"])


def span_copied(text: str, options: Options) -> bool:
    """A part of the request, from one character to another, is repeated and nothing else is said."""
    span = str(options["prompt_to_repeat"])[int(options["n_start"]) : int(options["n_end"])]
    return _plain(text) == _plain(span)


def phrase_repeated(text: str, options: Options) -> bool:
    """A phrase is there as often as is asked, each time with one word changed at most."""
    phrase = tokens(str(options["phrase"]).lower())
    said = tokens(text.lower())
    if not phrase:
        return False
    spans = (said[start : start + len(phrase)] for start in range(len(said) - len(phrase) + 1))
    found = sum(
        span[0] == phrase[0]
        and span[-1] == phrase[-1]
        and sum(one != other for one, other in zip(span, phrase, strict=True)) <= 1
        for span in spans
    )
    return found == int(options["small_n"])


def _plain(text: str) -> str:
    return str(text).strip().lower()


CHECKS: Final[dict[str, Check]] = {
    "detectable_content:number_placeholders": placeholders,
    "detectable_format:number_bullet_lists": bullets,
    "detectable_format:constrained_response": constrained,
    "detectable_format:number_highlighted_sections": highlights,
    "detectable_format:multiple_sections": sections,
    "detectable_format:json_format": is_json,
    "detectable_format:title": title,
    "detectable_format:sentence_hyphens": hyphenated,
    "detectable_format:square_brackets": bracketed,
    "detectable_format:bigram_wrapping": bigrams,
    "combination:two_responses": two_responses,
    "combination:repeat_prompt": prompt_first,
    "change_case:capital_word_frequency": capital_words,
    "change_case:english_capital": capitals,
    "change_case:english_lowercase": small_letters,
    "punctuation:no_comma": without(","),
    "punctuation:punctuation_dot": without("."),
    "punctuation:punctuation_exclamation": without("!"),
    "copy:copy": copied,
    "copy:copying_simple": copied,
    "copy:copying_multiple": copied_often,
    "copy:copy_span_idx": span_copied,
    "copy:repeat_phrase": phrase_repeated,
}

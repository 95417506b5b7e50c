"""Constraints on how long a text is, how it is divided, and how its sentences and itself begin and end.

Source: Zhou et al. 2023; Pyatkin et al. 2025.
"""

import re
from typing import Final

from resources_servers.instruction_following.reading import Check, Options, divided, holds, sentences, tokens, words

_POSTSCRIPTS: Final = {"P.P.S": r"p\.\s?p\.\s?s", "P.S.": r"p\.\s?s\."}
_COMPOSITION: Final = 3
_TWO: Final = 2


def number_of_sentences(text: str, options: Options) -> bool:
    """There are as many sentences as is asked."""
    return holds(options, len(sentences(text)), "num_sentences")


def number_of_words(text: str, options: Options) -> bool:
    """There are as many words as is asked."""
    return holds(options, len(words(text)), "num_words")


def number_of_paragraphs(text: str, options: Options) -> bool:
    """`***` divides the text into as many paragraphs as is asked."""
    return _paragraphs(text, int(options["num_paragraphs"]))


def nth_begins(text: str, options: Options) -> bool:
    """There are as many paragraphs, blank lines between them, as is asked; the nth begins with a word."""
    parts = re.split(r"\n\n", text)
    place = int(options["nth_paragraph"])
    filled = sum(bool(part.strip()) for part in parts)
    if filled != int(options["num_paragraphs"]) or not 1 <= place <= len(parts):
        return False
    said = parts[place - 1].split()
    first = re.split(r"[.,?!'\"]", said[0].lstrip("'\""), maxsplit=1)[0] if said else ""
    return first.lower() == str(options["first_word"]).lower()


def two_divided(text: str, _: Options) -> bool:
    """`***` divides the text into two paragraphs."""
    return _paragraphs(text, _TWO)


def two_spaced(text: str, _: Options) -> bool:
    """A blank line divides the text into two paragraphs."""
    return len([part for part in re.split(r"\n\n", text) if part.strip()]) == _TWO


def _paragraphs(text: str, wanted: int) -> bool:
    parts = divided(text)
    return parts is not None and len(parts) == wanted


def postscript(text: str, options: Options) -> bool:
    """There is a postscript with its marker."""
    marker = options["postscript_marker"]
    pattern = _POSTSCRIPTS.get(marker) or re.escape(marker.lower())
    return re.search(pattern, text.lower()) is not None


def composition(text: str, options: Options) -> bool:
    """`***` divides the text into three paragraphs, each of n sentences of n words."""
    parts = divided(text)
    if parts is None or len(parts) != _COMPOSITION:
        return False
    counted = [[len(tokens(sentence)) for sentence in sentences(part)] for part in parts]
    return all(counts == [int(options["n_words"])] * int(options["n_sent"]) for counts in counted)


def begins(text: str, options: Options) -> bool:
    """The first word is the one that is asked."""
    return _at(text, 0, options["first_word"])


def ends(text: str, options: Options) -> bool:
    """The last word is the one that is asked."""
    return _at(text, -1, options["last_word"])


def sentences_begin(text: str, options: Options) -> bool:
    """The first word of every sentence is the one that is asked."""
    found = sentences(text)
    return bool(found) and all(_at(sentence, 0, options["first_word"]) for sentence in found)


def sentences_end(text: str, options: Options) -> bool:
    """The last word of every sentence is the one that is asked."""
    found = sentences(text)
    return bool(found) and all(_at(sentence, -1, options["last_word"]) for sentence in found)


def _at(text: str, place: int, word: str) -> bool:
    said = tokens(text)
    return bool(said) and said[place].lower() == word.lower()


def end_phrase(text: str, options: Options) -> bool:
    """The text ends with a phrase."""
    return text.strip().strip('"').lower().endswith(str(options["end_phrase"]).strip().lower())


def quoted(text: str, _: Options) -> bool:
    """The whole text stands in double quotes."""
    whole = text.strip()
    return len(whole) > 1 and whole[0] == whole[-1] == '"'


CHECKS: Final[dict[str, Check]] = {
    "length_constraints:number_sentences": number_of_sentences,
    "length_constraints:number_words": number_of_words,
    "length_constraints:number_paragraphs": number_of_paragraphs,
    "length_constraints:nth_paragraph_first_word": nth_begins,
    "paragraphs:paragraphs": two_divided,
    "paragraphs:paragraphs2": two_spaced,
    "detectable_content:postscript": postscript,
    "count:counting_composition": composition,
    "first_word:first_word_answer": begins,
    "first_word:first_word_sent": sentences_begin,
    "last_word:last_word_answer": ends,
    "last_word:last_word_sent": sentences_end,
    "startend:end_checker": end_phrase,
    "startend:quotation": quoted,
}

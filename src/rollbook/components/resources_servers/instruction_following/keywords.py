"""Constraints on words and letters.

Source: Zhou et al. 2023; the constraints beyond its 25 are those of Pyatkin et al. 2025, "Generalizing Verifiable
Instruction Following".
"""

import re
from itertools import pairwise
from typing import Final

from resources_servers.instruction_following.reading import Check, Options, holds, sentences, tokens, words


def _count(text: str, keyword: str) -> int:
    return text.lower().count(keyword.lower())


def _has_word(text: str, word: str) -> bool:
    return re.search(rf"\b{re.escape(word)}\b", text, re.IGNORECASE) is not None


def existence(text: str, options: Options) -> bool:
    """Every keyword is there."""
    return all(_count(text, keyword) for keyword in options["keywords"])


def frequency(text: str, options: Options) -> bool:
    """A keyword is there as often as is asked."""
    return holds(options, _count(text, options["keyword"]), "frequency")


def forbidden(text: str, options: Options) -> bool:
    """None of some words is there."""
    return not any(_has_word(text, word) for word in options["forbidden_words"])


def letter_frequency(text: str, options: Options) -> bool:
    """A letter is there as often as is asked."""
    return holds(options, _count(text, options["letter"]), "let_frequency", "let_relation")


def once(text: str, options: Options) -> bool:
    """A keyword is there once."""
    return _count(text, options["keyword"]) == 1


def excluded(text: str, options: Options) -> bool:
    """A word is nowhere between spaces."""
    return f" {options['keyword']} " not in f" {text} "


def not_adjacent(text: str, _: Options) -> bool:
    """No two neighbouring words begin with letters that follow each other in the alphabet."""
    firsts = [word[0].lower() for word in words(text)]
    return not any(ord(after) - ord(before) == 1 for before, after in pairwise(firsts))


def palindrome(text: str, _: Options) -> bool:
    """Some word of more than one letter reads the same backwards."""
    return any(len(word) > 1 and word == word[::-1] for word in map(str.lower, words(text)))


def placed(text: str, options: Options) -> bool:
    """In sentence n, word m is the keyword."""
    number, place = int(options["n"]), int(options["m"])
    found = sentences(text)
    if not 1 <= number <= len(found):
        return False
    said = tokens(found[number - 1])
    return 1 <= place <= len(said) and said[place - 1].lower() == options["keyword"].lower()


def same_ends(text: str, _: Options) -> bool:
    """The first word is the last one too."""
    said = tokens(text)
    return bool(said) and said[0].lower() == said[-1].lower()


def letters(text: str, options: Options) -> bool:
    """There are as many letters as is asked."""
    return holds(options, sum(letter.isalpha() for letter in text), "N")


def lowercase_words(text: str, options: Options) -> bool:
    """There are no more words in small letters than is asked."""
    return sum(word.islower() for word in words(text)) <= int(options["N"])


def unique(text: str, _: Options) -> bool:
    """No word is there twice."""
    said = [word.lower() for word in words(text)]
    return len(said) == len(set(said))


def once_and_twice(text: str, options: Options) -> bool:
    """One keyword is there once, the other twice."""
    return _count(text, options["keyword1"]) == 1 and _count(text, options["keyword2"]) == 2  # noqa: PLR2004  once and twice


CHECKS: Final[dict[str, Check]] = {
    "keywords:existence": existence,
    "keywords:frequency": frequency,
    "keywords:forbidden_words": forbidden,
    "keywords:letter_frequency": letter_frequency,
    "keywords:word_once": once,
    "keywords:word_count_different_numbers": frequency,
    "keywords:exclude_word_harder": excluded,
    "keywords:no_adjacent_consecutive": not_adjacent,
    "keywords:palindrome": palindrome,
    "keywords:keyword_specific_position": placed,
    "keywords:start_end": same_ends,
    "letters:letter_counting": letters,
    "letters:letter_counting2": letter_frequency,
    "count:lowercase_counting": lowercase_words,
    "count:count_unique": unique,
    "count:count_increment_word": once_and_twice,
}

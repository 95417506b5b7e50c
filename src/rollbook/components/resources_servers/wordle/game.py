"""A game of Wordle: what a guess is answered, and what playing costs.

Rules:
* `G` is a letter in its place, `Y` one that the word has elsewhere as often as it is marked, `_` any other.
* Every guess takes a turn, also one that is no word.
* A guess costs: a word said before 0.2; each known place not used 0.05; no known letter used 0.03; each letter that is
  known not to be in the word 0.02; a text that is no word of the right length 0.02.
* A game that is won earns 2 less 0.2 for each turn before its last (a first guess that wins counts as a third), less
  what its guesses cost, and never less than 0. Any other game earns 0.

Source: servers.md §7.3 (9).
"""

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, Final

from pydantic import BaseModel, Field

REPEATED: Final = 0.2
PLACE_IGNORED: Final = 0.05
LETTERS_IGNORED: Final = 0.03
LETTER_RULED_OUT: Final = 0.02
NO_WORD: Final = 0.02
WON: Final = 2.0
TURN: Final = 0.2
LUCK: Final = 3


class Game(BaseModel):
    """A game: the word to be found, and what was guessed so far."""

    target: str
    turns: int
    turn: int = 0
    guesses: list[str] = Field(default_factory=list)
    answers: list[str] = Field(default_factory=list)
    cost: float = 0.0

    @property
    def won(self) -> bool:
        """Whether the word was found."""
        return bool(self.guesses) and self.guesses[-1] == self.target

    @property
    def over(self) -> bool:
        """Whether there is nothing left to guess."""
        return self.won or self.turn >= self.turns

    def guess(self, text: str, words: Collection[str]) -> dict[str, Any]:
        """Take a turn, and return what the tool answers."""
        word = text.strip().lower()
        self.turn += 1
        reason = self.why_no_guess(word, words)
        if reason is not None:
            self.cost += NO_WORD
            return self._answer(None, reason)
        self.cost += cost_of(word, self.guesses, self.answers)
        self.guesses.append(word)
        self.answers.append(marks(word, self.target))
        return self._answer(self.answers[-1], None)

    def why_no_guess(self, word: str, words: Collection[str]) -> str | None:
        """Return why a word may not be guessed, None when it may: the word that is sought always may."""
        return None if word == self.target else why_no_word(word, len(self.target), words)

    def reward(self) -> float:
        """Return what the game earned."""
        turn = LUCK if self.turn == 1 else self.turn
        return max(0.0, WON - TURN * (turn - 1) - self.cost) if self.won else 0.0

    def info(self) -> dict[str, Any]:
        """Return what is told of the game beside its reward."""
        outcome = "win" if self.won else "loss" if self.over else "incomplete"
        return {
            "game_outcome": outcome,
            "turns_used": self.turn,
            "won": float(self.won),
            "turns_if_won": float(self.turn * self.won),
        }

    def state(self) -> dict[str, Any]:
        """Return what is known so far."""
        places, letters, ruled_out = known(self.guesses, self.answers)
        return {
            "turn": self.turn,
            "turns_remaining": self.turns - self.turn,
            "guesses": [word.upper() for word in self.guesses],
            "feedback_history": self.answers,
            "known_greens": {str(place + 1): letter.upper() for place, letter in places.items()},
            "known_yellows": sorted(letter.upper() for letter in letters),
            "eliminated_letters": sorted(letter.upper() for letter in ruled_out),
            "game_over": self.over,
            "won": self.won,
        }

    def _answer(self, feedback: str | None, reason: str | None) -> dict[str, Any]:
        return {
            "valid": reason is None,
            "feedback": feedback,
            "won": self.won,
            "game_over": self.over,
            "turn": self.turn,
            "turns_remaining": self.turns - self.turn,
            "error": reason and f"{reason}.",
            "target_word": self.target.upper() if self.over and not self.won else None,
        }


def why_no_word(word: str, length: int, words: Collection[str]) -> str | None:
    """Return why a text cannot be guessed, None when it can."""
    if len(word) != length:
        return f"Guess must be {length} letters. Got {len(word)} letters"
    return None if word in words else f"{word!r} is not a valid English word"


def marks(word: str, target: str) -> str:
    """Return how a guess is answered, letter by letter."""
    left = Counter(letter for letter, right in zip(target, word, strict=True) if letter != right)
    found = []
    for letter, right in zip(word, target, strict=True):
        if letter == right:
            found.append("G")
        elif left[letter] > 0:
            left[letter] -= 1
            found.append("Y")
        else:
            found.append("_")
    return "".join(found)


def known(guesses: Sequence[str], answers: Sequence[str]) -> tuple[dict[int, str], set[str], set[str]]:
    """Return the letters whose place is known, those that are somewhere, and those that are nowhere."""
    marked = [
        (place, letter, mark)
        for word, answer in zip(guesses, answers, strict=True)
        for place, (letter, mark) in enumerate(zip(word, answer, strict=True))
    ]
    places = {place: letter for place, letter, mark in marked if mark == "G"}
    letters = {letter for _, letter, mark in marked if mark == "Y"}
    nowhere = {letter for _, letter, mark in marked if mark == "_"} - letters - set(places.values())
    return places, letters, nowhere


def cost_of(word: str, guesses: Sequence[str], answers: Sequence[str]) -> float:
    """Return what a guess costs, given those before it."""
    places, letters, nowhere = known(guesses, answers)
    ignored = sum(word[place] != letter for place, letter in places.items())
    unused = bool(letters) and not letters & set(word)
    ruled_out = sum(letter in nowhere for letter in word)
    return (
        REPEATED * (word in guesses) + PLACE_IGNORED * ignored + LETTERS_IGNORED * unused + LETTER_RULED_OUT * ruled_out
    )

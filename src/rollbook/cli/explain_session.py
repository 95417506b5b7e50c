"""One `gym eval explain`, from the run and the rollout it names to the printed story.

Rules:
* A rollout that the run does not know is a mistake in the command, and no empty story.
* Whatever the story is, the exit code is 0; of a run whose files are damaged it is 5, as that of a status is.

Source: collection.md §4.11, §17.1.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import click

from rollbook.cli.run_outputs import run_named
from rollbook.cli.terminal import say, say_json
from rollbook.records.identity import RolloutKey
from rollbook.records.run_status import DONE, VIOLATED, Damage
from rollbook.records.story import AllNotScored, Story
from rollbook.report.explain_text import not_scored_json, not_scored_text, story_json, story_text

NotScoredOf = Callable[[Path], AllNotScored]
StoryOf = Callable[[Path, RolloutKey], Story]
_KEY: Final = re.compile(r"([0-9]+)[- ]([0-9]+)")


def show_not_scored(word: str, not_scored: NotScoredOf, *, as_json: bool) -> int:
    """Print which rollouts of a run are not scored, and return the exit code."""
    output = run_named(word)
    found = not_scored(output)
    if as_json:
        say_json(not_scored_json(output, found))
    else:
        say(not_scored_text(output, found))
    return _code(found.damage)


def show_story(word: str, rollout: tuple[str, ...], story_of: StoryOf, *, as_json: bool) -> int:
    """Print the story of one rollout, and return the exit code.

    Raises:
        click.UsageError: words that are no rollout, or a rollout that the run does not know.

    """
    key = _key(rollout)
    output = run_named(word)
    story = story_of(output, key)
    if not story.is_known:
        raise click.UsageError(f"{output}: no rollout {key} is planned, and nothing is written about it.")
    if as_json:
        say_json(story_json(story))
    else:
        say(story_text(story))
    return _code(story.damage)


def _code(damage: Sequence[Damage]) -> int:
    return VIOLATED if damage else DONE


def _key(words: tuple[str, ...]) -> RolloutKey:
    match = _KEY.fullmatch(" ".join(words))
    if match is None:
        raise click.UsageError(f"{' '.join(words)}: give a task and a rollout as two numbers, for example 3 0.")
    return RolloutKey(int(match[1]), int(match[2]))

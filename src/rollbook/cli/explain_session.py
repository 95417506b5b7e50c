"""One `gym eval explain`, from the run and the rollout it names to the printed story.

Rules:
* A rollout that the run does not know is a mistake in the command, and no empty story.

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
from rollbook.records.story import NotScored, Story
from rollbook.report.explain_text import not_scored_json, not_scored_text, story_json, story_text

NotScoredOf = Callable[[Path], Sequence[NotScored]]
StoryOf = Callable[[Path, RolloutKey], Story]
_KEY: Final = re.compile(r"([0-9]+)[- ]([0-9]+)")


def show_not_scored(word: str, not_scored: NotScoredOf, *, as_json: bool) -> None:
    """Print which rollouts of a run are not scored."""
    output = run_named(word)
    groups = not_scored(output)
    if as_json:
        say_json(not_scored_json(output, groups))
    else:
        say(not_scored_text(output, groups))


def show_story(word: str, rollout: tuple[str, ...], story_of: StoryOf, *, as_json: bool) -> None:
    """Print the story of one rollout.

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


def _key(words: tuple[str, ...]) -> RolloutKey:
    match = _KEY.fullmatch(" ".join(words))
    if match is None:
        raise click.UsageError(f"{' '.join(words)}: give a task and a rollout as two numbers, for example 3 0.")
    return RolloutKey(int(match[1]), int(match[2]))

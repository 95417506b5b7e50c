"""What happened to one rollout, and which rollouts are not scored: as text and as JSON.

Rules:
* Chapters stand in their order, each with the place of the line that tells it.
* Rollouts that a resume would treat alike stand together, those that it would run first.
* What is damaged is told first: nothing that follows it says more than the files that can be read.

Source: collection.md §4.11, §17.1; case RC-61.
"""

import os
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import asdict

from rollbook.records.identity import RolloutKey
from rollbook.records.json_values import JsonObject
from rollbook.records.run_status import Damage, FilePath
from rollbook.records.story import AllNotScored, Chapter, NotScored, Story
from rollbook.report.shapes import VERSION
from rollbook.report.status_words import damaged_places, item, labelled, number_of, reason_line
from rollbook.report.words import shown

_MARGIN: Final = 8


def story_text(story: Story) -> str:
    """Return the story of one rollout."""
    return "\n".join(_story(story))


def story_json(story: Story) -> JsonObject:
    """Return the story of one rollout for programs."""
    return VERSION | {
        **_key(story.key),
        "planned": story.planned,
        "chapters": [asdict(chapter) for chapter in story.chapters],
        "stands": story.stands,
        "resume": story.resume,
        "damage": [asdict(damage) for damage in story.damage],
    }


def not_scored_text(output: FilePath, found: AllNotScored) -> str:
    """Return which rollouts are not scored, by what a resume would do with them."""
    path, groups = os.fspath(output), found.groups
    if not groups:
        every = "No rollout of {} is known not to be scored." if found.damage else "Every rollout of {} is scored."
        return "\n".join([*_damaged(found.damage), shown(every.format(path))])
    return "\n".join(
        [
            *_damaged(found.damage),
            shown(f"{path}: {number_of(sum(group.count for group in groups), 'rollout')} not scored"),
            *chain.from_iterable(map(_group, _owed_first(groups))),
            "",
            shown(f"The story of one: gym eval explain {shlex.quote(path)} {_first_of(groups)}"),
        ]
    )


def not_scored_json(output: FilePath, found: AllNotScored) -> JsonObject:
    """Return which rollouts are not scored, for programs."""
    return VERSION | {
        "output": os.fspath(output),
        "not_scored": sum(group.count for group in found.groups),
        "groups": [
            {"why": group.why, "owed": group.owed, "count": group.count, "first": [_key(key) for key in group.first]}
            for group in _owed_first(found.groups)
        ],
        "damage": [asdict(damage) for damage in found.damage],
    }


def _damaged(damage: Sequence[Damage]) -> Iterator[str]:
    if damage:
        yield from ["DAMAGED", *damaged_places(damage, "  "), ""]
        yield from ["Do not resume it before its files are mended: what follows may be wrong.", ""]


def _story(story: Story) -> Iterator[str]:
    yield from _damaged(story.damage)
    planned = "" if story.planned else ", which the plan does not hold"
    yield f"Rollout {story.key} (task {story.key.task}, rollout {story.key.rollout}){planned}"
    yield from chain.from_iterable(map(_chapter, story.chapters)) if story.chapters else ["  nothing was written"]
    yield from labelled("Stands", shown(story.stands), _MARGIN)
    yield from labelled("Resume", shown(story.resume), _MARGIN)


def _chapter(chapter: Chapter) -> list[str]:
    attempt = "no attempt" if chapter.attempt is None else f"attempt {chapter.attempt}"
    session = "" if chapter.session is None else f", session {chapter.session}"
    return [*item(shown(f"{attempt}{session}: {chapter.what}")), f"    {shown(chapter.place)}"]


def _group(group: NotScored) -> list[str]:
    fate = "A resume would run" if group.owed else "A resume would leave"
    more = group.count - len(group.first)
    named = ", ".join(map(str, group.first)) + (f", and {more} more" if more > 0 else "")
    return ["", *labelled("", f"{fate} {reason_line(group.why, group.count)}", 0), *item(named)]


def _owed_first(groups: Sequence[NotScored]) -> list[NotScored]:
    return sorted(groups, key=lambda group: not group.owed)


def _first_of(groups: Sequence[NotScored]) -> str:
    first = next((key for group in _owed_first(groups) for key in group.first), None)
    return "TASK ROLLOUT" if first is None else f"{first.task} {first.rollout}"


def _key(key: RolloutKey) -> JsonObject:
    return {"task": key.task, "rollout": key.rollout}

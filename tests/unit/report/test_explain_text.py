"""The story of a rollout, and the list of those that are not scored."""

from pathlib import Path

from msgspec.structs import replace

from rollbook.records.identity import RolloutKey
from rollbook.records.run_status import Damage
from rollbook.records.story import AllNotScored, Chapter, NotScored, Story
from rollbook.report.explain_text import not_scored_json, not_scored_text, story_json, story_text

OUTPUT = Path("my runs/r.jsonl")
STORY = Story(
    RolloutKey(3, 1),
    planned=True,
    chapters=(
        Chapter(0, 1, "reserved", "r_manifest.log:4"),
        Chapter(0, 1, "failed agent_run_error: 500 \x1b[31m", "r_failures.jsonl:2"),
        Chapter(1, 2, "scored reward=1.0", "r.jsonl:9"),
    ),
    stands="scored by attempt 1",
    resume="leave it: a result stands",
)
DAMAGE = (Damage("r_materialized_inputs.jsonl", "the run's plan is missing"),)
GROUPS = (
    NotScored("settled", owed=False, count=1, first=(RolloutKey(0, 0),)),
    NotScored("retryable", owed=True, count=22, first=tuple(RolloutKey(task, 0) for task in range(1, 21))),
)


def test_a_story_tells_its_chapters_in_order_each_with_its_place():
    assert story_text(STORY).splitlines() == [
        "Rollout 3-1 (task 3, rollout 1)",
        "  attempt 0, session 1: reserved",
        "    r_manifest.log:4",
        "  attempt 0, session 1: failed agent_run_error: 500 \\x1b[31m",
        "    r_failures.jsonl:2",
        "  attempt 1, session 2: scored reward=1.0",
        "    r.jsonl:9",
        "Stands  scored by attempt 1",
        "Resume  leave it: a result stands",
    ]


def test_a_rollout_without_chapters_says_that_nothing_was_written():
    story = Story(RolloutKey(0, 0), planned=True, chapters=(), stands="untouched", resume="run it")
    assert "  nothing was written" in story_text(story).splitlines()


def test_a_rollout_that_the_plan_does_not_hold_says_so():
    story = Story(RolloutKey(9, 9), planned=False, chapters=STORY.chapters, stands="scored", resume="leave it")
    assert "which the plan does not hold" in story_text(story)
    assert story.is_known
    assert not Story(RolloutKey(9, 9), planned=False, chapters=(), stands="", resume="").is_known


def test_a_story_in_json_has_the_same_chapters():
    told = story_json(STORY)
    assert (told["task"], told["rollout"]) == (3, 1)
    assert [chapter["place"] for chapter in told["chapters"]] == ["r_manifest.log:4", "r_failures.jsonl:2", "r.jsonl:9"]


def test_what_a_resume_would_run_is_listed_first_and_what_is_not_named_is_counted():
    lines = not_scored_text(OUTPUT, AllNotScored(GROUPS)).splitlines()
    assert lines[0] == "my runs/r.jsonl: 23 rollouts not scored"
    assert lines[2] == "A resume would run 22 retryable (failed, and the cap leaves another attempt)"
    assert "and 2 more" in " ".join(lines[3:5])
    assert "A resume would leave 1 settled (failed for good)" in lines
    assert lines[-1] == "The story of one: gym eval explain 'my runs/r.jsonl' 1 0"


def test_a_run_that_is_scored_throughout_is_told_in_one_line():
    assert not_scored_text(OUTPUT, AllNotScored(())) == "Every rollout of my runs/r.jsonl is scored."


def test_a_run_whose_files_are_damaged_is_not_said_to_be_scored_throughout():
    assert not_scored_text(OUTPUT, AllNotScored((), DAMAGE)).splitlines() == [
        "DAMAGED",
        "  r_materialized_inputs.jsonl: the run's plan is missing",
        "",
        "Do not resume it before its files are mended: what follows may be wrong.",
        "",
        "No rollout of my runs/r.jsonl is known not to be scored.",
    ]


def test_damage_stands_above_a_story_and_beside_it_in_json():
    story = replace(STORY, damage=DAMAGE)
    assert story_text(story).splitlines()[:2] == ["DAMAGED", "  r_materialized_inputs.jsonl: the run's plan is missing"]
    assert story_text(story).endswith(story_text(STORY))
    for told in (story_json(story), not_scored_json(OUTPUT, AllNotScored(GROUPS, DAMAGE))):
        assert told["damage"] == [{"place": "r_materialized_inputs.jsonl", "what": "the run's plan is missing"}]


def test_the_list_in_json_counts_all_and_names_the_first():
    told = not_scored_json(OUTPUT, AllNotScored(GROUPS))
    assert told["not_scored"] == 23
    assert [(group["why"], group["owed"], len(group["first"])) for group in told["groups"]] == [
        ("retryable", True, 20),
        ("settled", False, 1),
    ]

"""What is said of damaged files, and how often what to type is said."""

import pytest

from rollbook.recovery.damage import gone_on_over, refusal

LINE = "r.jsonl:3: not a rollout record: Expected `object`, got `array`"
GONE = "r_manifest.json: the manifest is gone; restore it, or go on without it with +allow_unsafe_resume=true"


@pytest.mark.parametrize("damage", [[LINE], [LINE, LINE], [GONE], [LINE, GONE], [GONE, GONE[:30]], [LINE] * 50])
def test_what_to_type_is_said_once(damage):
    told = refusal(damage)
    assert told.count("+allow_unsafe_resume=true") == 1
    assert told.startswith("\n".join(damage[:20]))


def test_damage_that_is_not_named_is_counted():
    assert "… and 30 more" in refusal([LINE] * 50)
    assert "more" not in refusal([LINE] * 20)


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (LINE, LINE),
        (GONE, "r_manifest.json: the manifest is gone"),
        ("a: b. Restore it; to go on without it, resume with +allow_unsafe_resume=true", "a: b"),
        ("a: b. Restore the file; to run again what is lost, resume with +allow_unsafe_resume=true", "a: b"),
    ],
)
def test_nobody_who_went_on_is_told_how_to(damage, told):
    assert gone_on_over([damage]) == [f"resumed all the same: {told}"]

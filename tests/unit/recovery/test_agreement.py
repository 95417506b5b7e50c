"""Whether a command agrees with the run that it is to go on with."""

import pytest

from rollbook.errors import ResumeRefusedError, RunError
from rollbook.records.identity import RolloutKey
from rollbook.recovery.agreement import Agreement, Difference, differences, verdict
from rollbook.recovery.drift import Drift
from rollbook.recovery.fingerprint import digest_of
from rollbook.recovery.plan_digest import PlanComparison

MODEL = "policy.responses_api_models.vllm.model"
VERIFIER = "verifier.resources_servers.math.tolerance"
OLD, NEW = "a" * 64, "b" * 64
SAME = PlanComparison.unchanged(8)
GROWN = PlanComparison(same=8, added=4)
SHORTER = PlanComparison(same=2, missing=6)
EDITED = PlanComparison(same=7, changed=(RolloutKey(1, 1),), changed_count=1)
ELSEWHERE = PlanComparison(added=3, missing=8)


def changes(*keys):
    return differences(dict.fromkeys(keys, OLD), dict.fromkeys(keys, NEW))


@pytest.mark.parametrize(
    ("old", "new", "found"),
    [
        ({MODEL: OLD}, {MODEL: OLD}, ()),
        ({MODEL: OLD}, {MODEL: NEW}, (Difference(MODEL, Drift.RERUNS, OLD, NEW),)),
        ({MODEL: OLD}, {}, (Difference(MODEL, Drift.RERUNS, OLD, None),)),
        ({}, {MODEL: NEW}, (Difference(MODEL, Drift.RERUNS, None, NEW),)),
        ({}, {"settings.limit": digest_of(None)}, ()),
        ({"settings.limit": digest_of(None)}, {}, ()),
        ({}, {"settings.limit": NEW}, (Difference("settings.limit", Drift.EXTENDS, None, NEW),)),
        (
            {MODEL: OLD},
            {MODEL: OLD, f"{MODEL}s": digest_of(None)},
            (Difference(f"{MODEL}s", Drift.RERUNS, None, digest_of(None)),),
        ),
    ],
)
def test_differences_name_what_is_not_alike(old, new, found):
    assert differences(old, new) == found


def test_a_server_that_only_new_rollouts_reach_extends_the_run():
    other = "other.responses_api_agents.simple.max_steps"
    found = differences({MODEL: OLD}, {MODEL: OLD, other: NEW})
    assert found == (Difference(other, Drift.EXTENDS, None, NEW),)


def test_a_server_in_the_place_of_another_is_no_addition():
    found = differences(
        {MODEL: OLD, "one.environment_servers.a.x": OLD}, {MODEL: OLD, "two.environment_servers.b.x": OLD}
    )
    assert {one.drift for one in found} == {Drift.RERUNS}


def test_nothing_that_differs_is_nothing_to_tell():
    assert verdict((), SAME) == Agreement(())


@pytest.mark.parametrize(
    ("keys", "comparison", "is_refused"),
    [
        (["settings.num_samples_in_parallel"], SAME, False),
        (["policy.responses_api_models.vllm.api_key"], SAME, False),
        (["settings.limit"], SAME, False),
        (["settings.limit"], GROWN, False),
        (["settings.limit"], SHORTER, False),
        (["settings.limit"], PlanComparison(missing=8), False),
        (["settings.prompt_config"], SAME, False),
        (["settings.prompt_config"], EDITED, True),
        ([], EDITED, True),
        ([], ELSEWHERE, True),
        ([], GROWN, False),
        ([MODEL], SAME, True),
        ([VERIFIER], SAME, True),
        (["settings.unheard_of"], SAME, True),
    ],
)
def test_a_resume_is_refused_where_answers_or_rewards_would_be_mixed(keys, comparison, is_refused):
    assert (verdict(changes(*keys), comparison).refused is not None) is is_refused


@pytest.mark.parametrize("comparison", [SAME, GROWN, SHORTER, EDITED, ELSEWHERE])
def test_every_difference_that_matters_is_shown_with_both_digests(comparison):
    keys = [MODEL, VERIFIER, "settings.agent_name", "settings.prompt_config"]
    agreement = verdict(changes(*keys), comparison)
    told = "\n".join([*agreement.notes, agreement.refused or ""])
    assert [key for key in keys if f"{key}: {OLD[:12]} -> {NEW[:12]}" not in told] == []
    assert OLD[:13] not in told


def test_a_refused_rerun_says_how_to_go_on():
    refused = verdict(changes(MODEL), SAME).refused
    assert "the run would hold answers of two settings\nstart a new run with another --output" in refused
    assert refused.count("+allow_unsafe_resume=true") == 1
    assert "reverify" not in refused


def test_a_refused_verifier_says_what_its_rewards_keep_and_names_nothing_that_is_not_there():
    refused = verdict(changes(VERIFIER), SAME).refused
    assert "the rewards that are saved keep the old verifier's settings" in refused
    assert "gym eval reverify has saved answers judged by the new ones" in refused
    assert refused.endswith("start a new run with another --output, or go on anyway with +allow_unsafe_resume=true")
    assert "answers of two" not in refused


def test_what_to_type_is_said_once_and_only_where_a_resume_is_refused():
    agreement = verdict(changes(MODEL, VERIFIER), SAME)
    assert agreement.refused.count("+allow_unsafe_resume") == 1
    assert "+allow_unsafe_resume" not in agreement.mixed
    assert "refused" not in agreement.mixed


def test_a_key_says_nothing_beside_a_key_below_it():
    refused = verdict(changes(f"{MODEL}s", MODEL, f"{MODEL}.a", f"{MODEL}.b[0].c"), SAME).refused
    listed = [line.split(":")[0].strip() for line in refused.splitlines() if line.startswith("  ")]
    assert listed == [f"{MODEL}.a", f"{MODEL}.b[0].c", f"{MODEL}s"]


@pytest.mark.parametrize(
    ("key", "comparison", "is_named"),
    [
        ("settings.limit", EDITED, False),
        ("settings.num_repeats", EDITED, False),
        ("settings.limit", ELSEWHERE, True),
        ("settings.agent_name", EDITED, True),
        ("inputs.input_jsonl_fpath", EDITED, True),
    ],
)
def test_a_setting_that_can_have_changed_no_row_is_not_named(key, comparison, is_named):
    assert (key in verdict(changes(key), comparison).refused) is is_named


def test_a_server_that_joined_the_run_is_not_named_where_rows_were_edited():
    other = "other.responses_api_agents.simple.max_steps"
    found = differences({MODEL: OLD}, {MODEL: OLD, other: NEW})
    assert other not in verdict(found, EDITED).refused


def test_edited_rows_are_named_with_the_settings_that_shape_them():
    refused = verdict(changes("settings.prompt_config"), EDITED).refused
    assert "1 of 8 planned rollouts ask something else: 1-1" in refused
    assert f"settings.prompt_config: {OLD[:12]} -> {NEW[:12]}" in refused


def test_edited_rows_without_a_changed_setting_point_at_the_files():
    assert "the dataset, prompt or skills files were edited" in verdict((), EDITED).refused


def test_a_shorter_plan_leaves_the_saved_one_as_it_is():
    notes = verdict(changes("settings.limit"), SHORTER).notes
    assert any("6 rollouts fewer" in note and "goes on with its 8 planned rollouts" in note for note in notes)


def test_a_longer_plan_says_by_how_much():
    notes = verdict(changes("settings.num_repeats"), GROWN).notes
    assert any("grows by 4 rollouts; the 8 that were planned before stand" in note for note in notes)


def test_a_setting_without_effect_is_noted_where_it_was_given_and_a_servers_own_always():
    port = "policy.responses_api_models.vllm.port"
    keys = ["settings.durability", "settings.adaptive_concurrency", port]
    (note,) = verdict(changes(*keys), SAME, {"durability"}).notes
    assert note.endswith(f"answers and rewards: {port}, settings.durability")
    assert verdict(changes("settings.adaptive_concurrency"), SAME, set()) == Agreement(())


@pytest.mark.parametrize("key", ["settings.limit", "settings.prompt_config"])
def test_a_setting_that_shapes_the_plan_is_noted_whether_it_was_given_or_not(key):
    assert verdict(changes(key), SAME, set()) == verdict(changes(key), SAME)


def test_irrelevant_differences_are_one_note_however_many_there_are():
    keys = [f"policy{number}.responses_api_models.vllm.api_key" for number in range(20)]
    (note,) = verdict(changes(*keys), SAME).notes
    assert "policy0.responses_api_models.vllm.api_key" in note
    assert note.endswith("and 12 more")


def test_a_key_that_one_side_does_not_have_is_shown_as_absent():
    assert str(Difference(MODEL, Drift.RERUNS, None, NEW)) == f"{MODEL}: absent -> {NEW[:12]}"


def test_a_refused_resume_is_an_error_of_a_run():
    assert issubclass(ResumeRefusedError, RunError)

"""Resuming with another command than the run was started with: what refuses, what extends, what makes no difference."""

import json

import pytest

from run_folder import SERVER_ERROR, RunFolder, json_reply, replies, rows_of, status_reply
from stub import AGENT, adding, serving

MODEL = "policy_model"
TWO_FAIL = replies({(2,): SERVER_ERROR, (3,): SERVER_ERROR})


def nothing_fails(_row):
    return None


def deployed(stub, model="small", key="sk-first"):
    """Let the stub's head tell of a model behind the agent."""
    config = stub.config()
    own = config[AGENT]["responses_api_agents"]["simple_agent"]
    config[AGENT]["responses_api_agents"]["simple_agent"] = own | {
        "model_server": {"type": "responses_api_models", "name": MODEL}
    }
    block = {"entrypoint": "app.py", "host": "127.0.0.1", "port": stub.port, "openai_model": model}
    block |= {"openai_base_url": f"http://127.0.0.1:{stub.port}/v1", "openai_api_key": key}
    config[MODEL] = {"responses_api_models": {"openai_model": block}}
    stub.config = lambda: config


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


@pytest.fixture
def half_done(folder):
    """Two of four tasks are scored, the others failed once and are owed."""
    with serving(TWO_FAIL) as stub:
        deployed(stub)
        answer = folder.asks(adding(4)).run(stub)
    assert answer.code == 3
    assert len(folder.sent) == 4
    return folder


def edited_prompt(folder, _stub):
    rows = adding(4)
    rows[1]["responses_create_params"]["input"] = "add 1 and 2"
    folder.asks(rows)
    return ()


def swapped_dataset(folder, _stub):
    rows = adding(4)
    for row in rows:
        row["responses_create_params"]["input"] = "take " + row["responses_create_params"]["input"]
    other = folder.input.with_name("other.jsonl")
    other.write_text("".join(json.dumps(row) + "\n" for row in rows))
    folder.input = other
    return ()


def other_model(_folder, stub):
    deployed(stub, model="large")
    return ()


CHANGES = [
    pytest.param(edited_prompt, "rows: 1 of 4", id="the prompt of one row"),
    pytest.param(lambda *_: ("--temperature", "0.5"), "temperature", id="temperature"),
    pytest.param(lambda *_: ("--max-output-tokens", "16"), "max_output_tokens", id="max output tokens"),
    pytest.param(other_model, f"{MODEL}.responses_api_models.openai_model.openai_model:", id="the model's name"),
    pytest.param(swapped_dataset, "input_jsonl_fpath", id="another dataset"),
    pytest.param(lambda *_: ("+num_repeats_add_seed=true",), "num_repeats_add_seed", id="seeds"),
]


@pytest.mark.parametrize(("change", "named"), CHANGES)
def test_rc_16_a_resume_that_would_mix_answers_is_refused_and_names_what_differs(half_done, change, named):
    before = {path.name: path.read_bytes() for path in half_done.folder.iterdir()}
    with serving() as stub:
        deployed(stub)
        answer = half_done.resume(stub, *change(half_done, stub))
        assert stub.requests == []
    assert answer.code == 1
    assert "the resume is refused" in answer.text
    assert named in answer.text.replace("\n", "")
    assert {path.name: path.read_bytes() for path in half_done.folder.iterdir()} == before


@pytest.fixture
def skilled(folder):
    """A run whose rows were given a skill, of which one of two tasks is owed; with the skill's file."""
    skill = folder.input.parent / "skills" / "one" / "SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text("---\nname: one\n---\nsay A\n")
    with serving(replies({(1,): SERVER_ERROR})) as stub:
        assert folder.asks(adding(2)).run(stub, f"+skills.path={skill.parent.parent}").code == 3
    return folder, skill


def test_a_resume_with_an_edited_skill_is_refused(skilled):
    folder, skill = skilled
    skill.write_text(skill.read_text().replace("say A", "say B"))
    with serving() as stub:
        answer = folder.resume(stub, f"+skills.path={skill.parent.parent}")
    assert answer.code == 1
    assert "inputs.skills" in answer.text
    assert folder.sent == []


def test_where_the_skills_lie_makes_no_difference(skilled):
    folder, skill = skilled
    moved = skill.parent.parent.rename(folder.input.parent / "elsewhere")
    with serving() as stub:
        assert folder.resume(stub, f"+skills.path={moved}").code == 0
    assert folder.sent == [(1, 0, 1)]


def test_a_run_whose_skills_lie_elsewhere_is_made_longer(skilled):
    folder, skill = skilled
    moved = skill.parent.parent.rename(folder.input.parent / "elsewhere")
    with serving() as stub:
        assert folder.resume(stub, f"+skills.path={moved}", "+num_repeats=2").code == 0
    assert sorted(folder.sent) == [(0, 1, 0), (1, 0, 1), (1, 1, 0)]


def test_a_run_of_before_links_were_followed_resumes_and_is_made_longer_under_the_hash_that_it_has(
    folder, tmp_path, monkeypatch
):
    skill, references = tmp_path / "skills" / "one", tmp_path / "references"
    for made in (skill, references):
        made.mkdir(parents=True)
    (references / "a.md").write_text("1")
    (skill / "SKILL.md").write_text("---\nname: one\n---\n")
    (skill / "references").symlink_to(references, target_is_directory=True)
    flag = f"+skills.path={skill.parent}"
    with monkeypatch.context() as before, serving(replies({(1,): SERVER_ERROR})) as stub:
        before.setattr("rollbook.inputs.skills._files", lambda top: (one for one in top.rglob("*") if one.is_file()))
        assert folder.asks(adding(2)).run(stub, flag).code == 3
    for words, sent in (([], [(1, 0, 1)]), (["+num_repeats=2"], [(0, 1, 0), (1, 1, 0)]), (["+num_repeats=2"], [])):
        with serving() as stub:
            answer = folder.resume(stub, flag, *words)
        assert (answer.code, sorted(folder.sent)) == (0, sent), answer.text
    assert len({row["skills_ref"]["hash"] for row in rows_of(folder.plan)}) == 1
    (skill / "more.md").write_text("more")
    with serving() as stub:
        answer = folder.resume(stub, flag, "+num_repeats=3")
    assert (answer.code, "inputs.skills" in answer.text) == (1, True)


@pytest.mark.parametrize("key", ["sk-first", "sk-second"], ids=["another port", "another port and API key"])
def test_rc_16_another_address_or_credential_makes_no_difference(half_done, key):
    with serving() as stub:
        deployed(stub, key=key)
        answer = half_done.resume(stub)
    assert answer.code == 0
    assert half_done.sent == [(2, 0, 1), (3, 0, 1)]
    assert not any(key.encode() in path.read_bytes() for path in half_done.folder.iterdir())


def test_rc_16_a_refused_resume_leaves_a_run_that_its_own_command_still_goes_on_with(half_done):
    with serving() as stub:
        deployed(stub)
        assert half_done.resume(stub, "--temperature", "0.5").code == 1
        assert half_done.resume(stub).code == 0
    assert half_done.sent == [(2, 0, 1), (3, 0, 1)]


def test_rc_18_speed_settings_are_free_to_change(folder):
    overloaded = replies({(task,): status_reply(503) for task in (1, 3, 5, 7)})
    with serving(overloaded) as stub:
        assert folder.asks(adding(8)).run(stub, "--concurrency", "64").code == 3
        assert len(folder.sent) == 8
        stub.script = nothing_fails
        speed = ("--concurrency", "1", "--durability", "flush", "--grace", "1", "--take-over", "-v")
        answer = folder.resume(stub, *speed)
        assert answer.code == 0
        assert [task for task, _, _ in folder.sent] == [1, 3, 5, 7]
        refused = folder.resume(stub, "--concurrency", "1", "--max-output-tokens", "16")
        assert refused.code == 1
        assert "max_output_tokens" in refused.text
        assert folder.sent == []


def test_a_refused_resume_goes_on_when_it_is_told_to_and_keeps_what_differed(half_done):
    with serving() as stub:
        deployed(stub)
        answer = half_done.resume(stub, "--temperature", "0.5", "+allow_unsafe_resume=true")
        assert [row["responses_create_params"] for row in stub.requests] == [
            {"input": "add 2 and 2"},
            {"input": "add 3 and 3"},
        ]
    assert answer.code == 0
    assert "resumed all the same" in answer.text
    assert any("temperature" in key for key in half_done.told_manifest()["sessions"][-1]["drift"])


def test_a_dataset_that_is_gone_is_named_and_needed_unless_it_is_told_to_go_on_without(half_done):
    half_done.input.unlink()
    with serving() as stub:
        deployed(stub)
        answer = half_done.resume(stub)
        assert answer.code == 1
        assert "in.jsonl: no such dataset" in answer.text.replace("\n", "")
        assert stub.requests == []
        answer = half_done.resume(stub, "+allow_unsafe_resume=true")
    assert answer.code == 0
    assert half_done.sent == [(2, 0, 1), (3, 0, 1)]
    assert "the dataset is gone" in answer.text


def test_a_damaged_line_ends_the_resume_with_5_and_is_left_behind_when_told_to(half_done):
    half_done.results.write_bytes(half_done.results.read_bytes() + b'["broken"]\n')
    with serving() as stub:
        deployed(stub)
        answer = half_done.resume(stub)
        assert answer.code == 5
        assert "r.jsonl:3:" in answer.text.replace("\n", "")
        assert stub.requests == []
        answer = half_done.resume(stub, "+allow_unsafe_resume=true")
        assert answer.code == 5, answer.text
        assert half_done.status()["exit_code"] == 5
    assert half_done.sent == [(2, 0, 1), (3, 0, 1)]
    assert half_done.results.read_bytes().count(b'["broken"]\n') == 1


def test_a_run_whose_log_is_lost_goes_on_by_its_records_when_told_to_and_from_then_on(half_done):
    half_done.log.unlink()
    with serving(replies({(3,): SERVER_ERROR})) as stub:
        deployed(stub)
        answer = half_done.resume(stub)
        assert answer.code == 5
        said = "r_failures.jsonl:1: attempt 0 of rollout 2-0 was never handed out by r_manifest.log, and 3 more records"
        assert said in answer.text.replace("\n", "")
        assert half_done.resume(stub, "+allow_unsafe_resume=true").code == 3
        assert half_done.sent == [(2, 0, 1), (3, 0, 1)]
        assert half_done.status()["damage"] == []
        stub.script = nothing_fails
        assert half_done.resume(stub).code == 0
        assert half_done.sent == [(3, 0, 2)]


def test_a_longer_plan_under_another_model_is_planned_when_it_is_told_to_and_not_before(folder):
    with serving() as stub:
        deployed(stub)
        folder.asks(adding(3)).run(stub, "--limit", "2")
        plan = folder.plan.read_bytes()
        deployed(stub, model="large")
        assert folder.resume(stub).code == 1
        assert folder.plan.read_bytes() == plan
        answer = folder.resume(stub, "+allow_unsafe_resume=true")
        assert answer.code == 0
        assert folder.sent == [(2, 0, 0)]
        assert "the plan grows by 1 rollouts" in " ".join(answer.text.split())
        assert folder.resume(stub).code == 1


RETRY = "+retry_terminal_timeouts="
TIMED_OUT = replies({(1,): json_reply(_ng_failure_class="timeout_exceeded", _ng_failure_terminal=True)})


def test_a_resume_lets_terminal_timeouts_run_again_and_later_ones_keep_it(folder):
    with serving(TIMED_OUT) as stub:
        assert folder.asks(adding(2)).run(stub).code == 0
        assert folder.resume(stub).code == 0
        assert folder.sent == []
        answer = folder.resume(stub, f"{RETRY}true")
        assert answer.code == 3
        assert folder.sent == [(1, 0, 1)]
        assert "retry_terminal_timeouts=true: terminal timeouts run again" in " ".join(answer.text.split())
        assert folder.told_manifest()["retry_terminal_timeouts"] is True
        assert folder.status()["outstanding"] == 1
        stub.script = nothing_fails
        answer = folder.resume(stub)
    assert folder.sent == [(1, 0, 2)]
    assert "retry_terminal_timeouts" not in answer.text


def test_a_resume_that_takes_the_retry_of_terminal_timeouts_back_is_told_that_it_does_not_hold(folder):
    with serving(TIMED_OUT) as stub:
        assert folder.asks(adding(2)).run(stub, f"{RETRY}true").code == 3
        answer = folder.resume(stub, f"{RETRY}false")
    assert folder.sent == [(1, 0, 1)]
    assert "retry_terminal_timeouts=false does not hold" in " ".join(answer.text.split())
    assert folder.told_manifest()["retry_terminal_timeouts"] is True

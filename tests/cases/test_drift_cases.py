"""Resuming with another command than the run was started with: what refuses, what extends, what makes no difference."""

import json

import pytest

from rollbook.errors import LedgerError
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.extension import extend_plan
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import Line
from rollbook.plan.batch_facts import observed_members
from rollbook.records.manifest import PlanDigest
from run_folder import SERVER_ERROR, RunFolder, identities, replies, rows_of, status_reply
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
        assert answer.code == 0, answer.text
    assert half_done.sent == [(2, 0, 1), (3, 0, 1)]
    assert half_done.results.read_bytes().count(b'["broken"]\n') == 1


def test_a_run_whose_log_is_lost_goes_on_by_its_records_when_told_to_and_from_then_on(half_done):
    half_done.log.unlink()
    with serving(replies({(3,): SERVER_ERROR})) as stub:
        deployed(stub)
        answer = half_done.resume(stub)
        assert answer.code == 5
        assert "r_manifest.log: 4 records are of attempts" in answer.text.replace("\n", "")
        assert half_done.resume(stub, "+allow_unsafe_resume=true").code == 3
        assert half_done.sent == [(2, 0, 1), (3, 0, 1)]
        assert half_done.status()["damage"] == []
        stub.script = nothing_fails
        assert half_done.resume(stub).code == 0
        assert half_done.sent == [(3, 0, 2)]


@pytest.fixture
def small(folder):
    """A finished run of two tasks, twice each."""
    with serving() as stub:
        assert folder.asks(adding(5)).run(stub, "--limit", "2", "--num-repeats", "2").code == 0
    return folder


def more_repeats(folder):
    return ("--limit", "2", "--num-repeats", "4"), [(task, repeat) for task in (0, 1) for repeat in (2, 3)]


def larger_limit(folder):
    return ("--limit", "5", "--num-repeats", "2"), [(task, repeat) for task in (2, 3, 4) for repeat in (0, 1)]


def no_limit(folder):
    return ("--num-repeats", "2"), [(task, repeat) for task in (2, 3, 4) for repeat in (0, 1)]


def appended_rows(folder):
    folder.asks(adding(7))
    return ("--limit", "6", "--num-repeats", "2"), [(task, repeat) for task in (2, 3, 4, 5) for repeat in (0, 1)]


def repeated_rows(folder):
    folder.asks(adding(2) + adding(1))
    return ("--num-repeats", "2"), [(0, 2), (0, 3)]


def fewer_tasks_and_more_repeats(_folder):
    return ("--limit", "1", "--num-repeats", "4"), [(0, 2), (0, 3)]


EXTENSIONS = [more_repeats, larger_limit, no_limit, appended_rows, repeated_rows, fewer_tasks_and_more_repeats]


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_longer_plan_keeps_every_byte_of_the_old_one_and_runs_what_is_new(small, extension):
    plan, results, manifest = small.plan.read_bytes(), small.results.read_bytes(), small.told_manifest()
    flags, added = extension(small)
    with serving() as stub:
        answer = small.resume(stub, *flags)
    assert answer.code == 0
    assert [key[:2] for key in small.sent] == added
    assert small.plan.read_bytes().startswith(plan)
    assert small.results.read_bytes().startswith(results)
    assert sorted(identities(small.results)) == sorted(identities(small.plan))
    told = small.told_manifest()
    assert told["run_id"] == manifest["run_id"]
    assert told["plan"] == {
        "sha256": sha256_of(small.plan),
        "bytes": small.plan.stat().st_size,
        "rollouts": 4 + len(added),
    }


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_a_longer_plan_is_the_runs_own_from_then_on(small, extension):
    flags, added = extension(small)
    with serving(replies({(added[0][0],): SERVER_ERROR})) as stub:
        assert small.resume(stub, *flags).code == 3
        stub.script = nothing_fails
        plan = small.plan.read_bytes()
        assert small.resume(stub, *flags).code == 0
        assert {key[:2] for key in small.sent} <= set(added)
        assert small.resume(stub, *flags).code == 0
        assert small.sent == []
    assert small.plan.read_bytes() == plan


def test_repeats_that_are_added_go_on_with_the_seeds(folder):
    flags = ("+num_repeats_add_seed=true", "--num-repeats")
    with serving() as stub:
        folder.asks(adding(1)).run(stub, *flags, "2")
        assert folder.resume(stub, *flags, "4").code == 0
        bodies = [row["responses_create_params"]["metadata"]["extra_body"] for row in stub.requests]
    assert [json.loads(body)["seed"] for body in bodies] == [0, 1, 2, 3]


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


SECOND = "second"


def two_agents(stub, prompt):
    """Let the stub's head tell of a second agent, with `prompt` as its own setting."""
    config = type(stub).config(stub)
    here = {"entrypoint": "app.py", "host": "127.0.0.1", "port": stub.port}
    config[SECOND] = {"responses_api_agents": {"simple_agent": here | {"system_prompt": prompt}}}
    front = {"agent_server": {"type": "responses_api_agents", "name": SECOND}}
    config[f"{SECOND}_env"] = {"environment_servers": {"legacy_agent": here | front}}
    stub.config = lambda: config


@pytest.fixture
def joined(folder):
    """A run that a second agent's tasks were added to; one of them is owed."""
    with serving(replies({(3,): SERVER_ERROR})) as stub:
        two_agents(stub, "be brief")
        assert folder.asks(adding(2)).run(stub).code == 0
        folder.asks(adding(2) + [row | {"agent_ref": {"name": SECOND}} for row in adding(4)[2:]])
        assert folder.resume(stub).code == 3
    return folder


@pytest.mark.parametrize(("prompt", "code"), [("be brief", 0), ("be long", 1)])
def test_settings_of_an_agent_that_joined_with_a_longer_plan_are_compared_from_then_on(joined, prompt, code):
    with serving() as stub:
        two_agents(stub, prompt)
        answer = joined.resume(stub)
    assert answer.code == code
    assert ("second.responses_api_agents.simple_agent.system_prompt" in answer.text.replace("\n", "")) == (code == 1)
    assert joined.sent == ([] if code else [(3, 0, 1)])


def test_keys_of_an_agent_that_the_plan_holds_and_the_manifest_does_not_are_taken_up(joined):
    told = joined.told_manifest()
    saved = told["configuration_keys"]
    old = {key: digest for key, digest in saved.items() if not key.startswith(SECOND)}
    joined.manifest.write_text(json.dumps(told | {"configuration_keys": old}))
    with serving(replies({(3,): SERVER_ERROR})) as stub:
        two_agents(stub, "be brief")
        assert joined.resume(stub).code == 3
    assert old != saved
    assert joined.told_manifest()["configuration_keys"] == saved


def test_an_agent_that_joins_a_run_that_is_gone_on_with_all_the_same_is_taken_up_and_what_differs_is_not(folder):
    with serving() as stub:
        two_agents(stub, "be brief")
        assert folder.asks(adding(1)).run(stub).code == 0
        saved = folder.told_manifest()["configuration_keys"]
        folder.asks([*adding(1), adding(2)[1] | {"agent_ref": {"name": SECOND}}])
        config = stub.config()
        config[AGENT]["responses_api_agents"]["simple_agent"]["system_prompt"] = "be kind"
        assert folder.resume(stub, "+allow_unsafe_resume=true").code == 0
    keys = folder.told_manifest()["configuration_keys"]
    assert {key: digest for key, digest in keys.items() if not key.startswith(SECOND)} == saved
    assert f"{SECOND}.responses_api_agents.simple_agent.system_prompt" in keys


@pytest.fixture
def two_of_four(folder):
    """A finished run of the first two of four tasks."""
    with serving() as stub:
        assert folder.asks(adding(4)).run(stub, "--limit", "2").code == 0
    return folder


def batch_of(tasks, path):
    """Write what an outer scheduler says of a run of `tasks`."""
    (seen,) = observed_members({**row, "_ng_task_index": n, "_ng_rollout_index": 0} for n, row in enumerate(tasks))
    member = {"agent_ref": {"name": seen.agent}, "tasks": seen.tasks, "dataset_fingerprint": seen.dataset_fingerprint}
    policy = {"num_repeats": 1, "add_seed": False}
    path.write_text(json.dumps({"schema_version": 1, "members": [member | {"repeat_policy": policy}]}))
    return f"+batch_manifest_fpath={path}"


@pytest.mark.parametrize(("tasks", "code"), [(2, 1), (4, 0)], ids=["the old plan's", "the longer plan's"])
def test_a_plan_grows_once_the_longer_one_is_what_the_batch_manifest_says(two_of_four, tasks, code):
    before = {path.name: path.read_bytes() for path in two_of_four.folder.iterdir()}
    batch = batch_of(adding(tasks), two_of_four.input.with_name("batch.json"))
    with serving() as stub:
        assert two_of_four.resume(stub, batch).code == code
    assert two_of_four.sent == ([] if code else [(2, 0, 0), (3, 0, 0)])
    if code:
        assert {path.name: path.read_bytes() for path in two_of_four.folder.iterdir()} == before


@pytest.mark.parametrize("added", [1, 3])
def test_a_plan_whose_new_rows_are_not_as_many_as_were_judged_stays_as_it_was(two_of_four, added):
    paths, plan = RunPaths(two_of_four.output), two_of_four.plan.read_bytes()
    in_force = PlanDigest.model_validate(two_of_four.told_manifest()["plan"])
    lines = [Line(0, 0, 2, b"{}")] * 2
    with pytest.raises(LedgerError, match="the dataset was changed meanwhile"):
        extend_plan(paths, in_force, lines, added)
    assert two_of_four.plan.read_bytes() == plan
    assert extend_plan(paths, in_force, lines, 2).rollouts == 4


def test_a_smaller_limit_keeps_the_plan_and_says_so(folder):
    with serving(replies({(4,): SERVER_ERROR})) as stub:
        assert folder.asks(adding(5)).run(stub).code == 3
        plan, stub.script = folder.plan.read_bytes(), nothing_fails
        answer = folder.resume(stub, "--limit", "2")
    assert answer.code == 0
    assert folder.sent == [(4, 0, 1)]
    assert folder.plan.read_bytes() == plan
    assert "the saved plan stands" in " ".join(answer.text.split())
    assert "5 of 5" in answer.text


TAILS = [
    pytest.param(lambda line: line + b"\n", id="whole lines"),
    pytest.param(lambda line: line + b"\n" + line[:30], id="half a line behind a whole one"),
    pytest.param(lambda line: line, id="a line without its newline"),
]


@pytest.mark.parametrize("flags", [("--limit", "2"), ("--limit", "5")], ids=["the old command", "the longer one"])
@pytest.mark.parametrize("tail", TAILS)
def test_lines_that_a_death_left_behind_the_plan_are_cut_and_kept(small, tail, flags):
    """The process died after it had appended to the plan, and before the manifest said so."""
    plan = small.plan.read_bytes()
    left = tail(json.dumps(rows_of(small.plan)[0] | {"_ng_task_index": 2}).encode())
    small.plan.write_bytes(plan + left)
    with serving() as stub:
        answer = small.resume(stub, *flags, "--num-repeats", "2")
    assert answer.code == 0
    assert small.plan.read_bytes().startswith(plan)
    assert identities(small.plan) == sorted(set(identities(small.plan)))
    assert len(small.sent) == (0 if flags[1] == "2" else 6)
    assert small.plan.with_name(f"{small.plan.name}.torn").read_bytes() == left + b"\n"
    assert f"{len(left)} bytes" in " ".join(answer.text.split())

"""A resume that plans more than its run did: what stands, what is added, and what is compared from then on."""

import json
from contextlib import contextmanager

import msgspec
import pytest

from rollbook.errors import LedgerError
from rollbook.ledger.digests import sha256_of
from rollbook.ledger.extension import extend_plan
from rollbook.ledger.paths import RunPaths
from rollbook.ledger.reader import Line
from rollbook.plan.batch_facts import observed_members
from rollbook.records.manifest import PlanDigest
from run_folder import SERVER_ERROR, RunFolder, identities, replies, rows_of
from stub import AGENT, adding, serving


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def nothing_fails(_row):
    return None


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


def huge(count):
    rows = adding(count)
    for row in rows[:2]:
        row["responses_create_params"]["input"] += "z" * (9 << 20)
    return rows


def test_a_plan_of_huge_rows_is_what_its_batch_manifest_says_and_grows_without_a_difference(folder):
    batch = folder.input.with_name("batch.json")
    with serving() as stub:
        assert folder.asks(huge(2)).run(stub, batch_of(huge(2), batch)).code == 0
        answer = folder.asks(huge(3)).resume(stub, batch_of(huge(3), batch))
        asked = [len(row["responses_create_params"]["input"]) for row in stub.requests]
    assert answer.code == 0
    assert folder.sent == [(2, 0, 0)]
    assert asked == [len(row["responses_create_params"]["input"]) for row in huge(3)]


@pytest.mark.parametrize("added", [1, 3])
def test_a_plan_whose_new_rows_are_not_as_many_as_were_judged_stays_as_it_was(two_of_four, added):
    paths, plan = RunPaths(two_of_four.output), two_of_four.plan.read_bytes()
    in_force = msgspec.convert(two_of_four.told_manifest()["plan"], PlanDigest)
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


@contextmanager
def files_of_at_most(size):
    """Let this process write no file beyond `size` bytes, as on a disk that is full."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("flags", [(), ("--limit", "2")], ids=["the plan", "the manifest"])
def test_a_disk_that_is_full_when_a_run_is_gone_on_with_is_told_and_leaves_the_run_as_it_was(folder, flags):
    with serving(replies({(1,): SERVER_ERROR})) as stub:
        assert folder.asks(adding(4, note="n" * 5000)).run(stub, "--limit", "2").code == 3
        before = {path.name: path.read_bytes() for path in folder.folder.iterdir()}
        full = folder.manifest if flags else folder.plan
        with files_of_at_most(full.stat().st_size + 10):
            answer = folder.resume(stub, *flags)
    assert answer.code == 1
    assert "cannot write" in answer.text
    assert "Free the disk" in " ".join(answer.text.split())
    assert folder.sent == []
    assert {path.name: path.read_bytes() for path in folder.folder.iterdir()} == before


def test_metrics_and_counts_of_a_shorter_run_do_not_stay_beside_a_longer_one(small):
    reports = [small.output.with_name(f"r_{name}.json") for name in ("aggregate_metrics", "coverage")]
    before = [path.read_bytes() for path in reports]
    with serving() as stub:
        small.run(stub, "--limit", "3", "--num-repeats", "2", "--resume", "--disable-aggregation")
    metrics, counts = reports
    assert not metrics.exists()
    assert counts.read_bytes() != before[1]

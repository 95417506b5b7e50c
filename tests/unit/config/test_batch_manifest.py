"""The hand-off from an outer scheduler, and what it is held against."""

import hashlib
import json
from dataclasses import replace

import pytest

from rollbook.config.batch_manifest import ObservedBatchMember, load_batch_manifest, refuse_mismatch
from rollbook.errors import ConfigError, ConfigPathNotFoundError

FINGERPRINT = "ab" * 32
MEMBER = {
    "agent_ref": {"name": "math"},
    "tasks": 50,
    "dataset_fingerprint": FINGERPRINT,
    "repeat_policy": {"num_repeats": 4, "add_seed": True},
}
MANIFEST = {"schema_version": 1, "members": [MEMBER]}
SEEN = ObservedBatchMember("math", 50, FINGERPRINT, (4,), seeds_follow_repeats=True, seeds_vary=True)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "batch.json"


def loaded(path, manifest=MANIFEST):
    path.write_text(json.dumps(manifest), encoding="utf-8")
    return load_batch_manifest(path)


def test_a_manifest_is_named_by_the_digest_of_its_exact_bytes(path):
    path.write_bytes(json.dumps(MANIFEST).encode() + b"\n \n")
    found = load_batch_manifest(path)
    assert found.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert found.sha256 != loaded(path).sha256
    assert found.manifest.members[0].repeat_policy.num_repeats == 4


def test_a_manifest_that_is_not_there_is_named(path):
    with pytest.raises(ConfigPathNotFoundError, match=r"batch\.json: no such batch manifest"):
        load_batch_manifest(path)


def test_a_folder_is_no_manifest(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        load_batch_manifest(tmp_path)


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ({**MANIFEST, "schema_version": 2}, "schema_version"),
        ({**MANIFEST, "members": []}, "members"),
        ({**MANIFEST, "members": [MEMBER, MEMBER]}, "several members have the agent math"),
        ({**MANIFEST, "members": [{**MEMBER, "tasks": "50"}]}, "members.0.tasks"),
        ({**MANIFEST, "members": [{**MEMBER, "tasks": True}]}, "members.0.tasks"),
        ({**MANIFEST, "members": [{**MEMBER, "tasks": 0}]}, "members.0.tasks"),
        ({**MANIFEST, "members": [{**MEMBER, "dataset_fingerprint": "abc"}]}, "members.0.dataset_fingerprint"),
        ({**MANIFEST, "members": [{**MEMBER, "repeat_policy": {"num_repeats": 0}}]}, "repeat_policy.num_repeats"),
        ({**MANIFEST, "api_key": "sk-secret"}, "api_key"),
        ({**MANIFEST, "members": [{**MEMBER, "agent_ref": {"name": ""}}]}, "members.0.agent_ref.name"),
        ([], "batch.json is no batch manifest"),
    ],
)
def test_what_is_no_manifest_is_refused_with_the_place_and_without_the_value(manifest, said, path):
    with pytest.raises(ConfigError) as refused:
        loaded(path, manifest)
    assert said in str(refused.value)
    assert "sk-secret" not in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"null"])
def test_a_file_that_is_no_json_object_is_one_line_of_error(content, path):
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="is no batch manifest"):
        load_batch_manifest(path)


def test_rows_that_are_as_the_manifest_says_pass(path):
    refuse_mismatch(loaded(path), [SEEN])


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ([replace(SEEN, tasks=49)], "math: tasks: 50 in the manifest, 49 planned"),
        ([replace(SEEN, dataset_fingerprint="cd" * 32)], "math: dataset_fingerprint: abab"),
        ([replace(SEEN, repeats=(3,))], "math: num_repeats: 4 in the manifest, 3 planned"),
        ([replace(SEEN, repeats=(3, 4))], "math: num_repeats: 4 in the manifest, 3 or 4 planned"),
        ([replace(SEEN, seeds_follow_repeats=False)], "math: add_seed: on in the manifest"),
        ([], "math: a member without a planned row"),
        ([SEEN, replace(SEEN, agent="code")], "code: rows are planned, and no member has this agent"),
    ],
)
def test_a_difference_refuses_the_run_and_is_named(seen, said, path):
    with pytest.raises(ConfigError) as refused:
        refuse_mismatch(loaded(path), seen)
    assert said in str(refused.value)


def test_every_difference_is_told_at_once(path):
    with pytest.raises(ConfigError) as refused:
        refuse_mismatch(loaded(path), [replace(SEEN, tasks=1, repeats=(1,)), replace(SEEN, agent="code")])
    assert len(str(refused.value).splitlines()) == 5


@pytest.mark.parametrize(("vary", "passes"), [(False, True), (True, False)])
def test_without_seeds_repeats_of_a_task_may_not_differ_in_their_seed(vary, passes, path):
    manifest = loaded(path, {**MANIFEST, "members": [{**MEMBER, "repeat_policy": {"num_repeats": 4}}]})
    seen = replace(SEEN, seeds_vary=vary)
    if passes:
        refuse_mismatch(manifest, [seen])
    else:
        with pytest.raises(ConfigError, match="add_seed: off in the manifest"):
            refuse_mismatch(manifest, [seen])
